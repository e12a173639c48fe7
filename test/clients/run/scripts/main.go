// The modes of a client with net/http. Arguments: the URL, the mode, and a file that "up" sends.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	url, mode, file := os.Args[1], os.Args[2], os.Args[3]
	answer, err := send(url, mode, file)
	check(err)
	defer answer.Body.Close()
	switch mode {
	case "down":
		hash := sha256.New()
		size, err := io.Copy(hash, answer.Body)
		check(err)
		fmt.Printf("%d %x\n", size, hash.Sum(nil))
	case "stream", "revoked":
		_, err := io.Copy(os.Stdout, answer.Body)
		check(err)
	default:
		text, err := io.ReadAll(answer.Body)
		check(err)
		fmt.Println(answer.StatusCode, string(text))
		if answer.StatusCode != 200 {
			os.Exit(1)
		}
	}
}

func send(url, mode, file string) (*http.Response, error) {
	if mode == "held" {
		return http.Post(url, "text/plain", strings.NewReader("hello"))
	}
	if mode != "up" {
		return http.Get(url)
	}
	body, err := os.Open(file)
	check(err)
	return http.Post(url, "application/octet-stream", body)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
