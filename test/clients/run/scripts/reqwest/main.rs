//! The modes of a client with reqwest. Arguments: the URL, the mode, and a file that "up" sends.
use reqwest::blocking::{Client, Response};
use std::{env, error::Error, fs::File, io, process};

fn main() {
    let args: Vec<String> = env::args().collect();
    if let Err(error) = call(&args[1], &args[2], &args[3]) {
        eprintln!("{error:?}");
        process::exit(1);
    }
}

fn call(url: &str, mode: &str, file: &str) -> Result<(), Box<dyn Error>> {
    let mut answer = send(url, mode, file)?;
    if matches!(mode, "down" | "stream" | "revoked") {
        io::copy(&mut answer, &mut io::LineWriter::new(io::stdout()))?;
        return Ok(());
    }
    let status = answer.status();
    println!("{} {}", status.as_u16(), answer.text()?);
    if status.is_success() { Ok(()) } else { Err("refused".into()) }
}

fn send(url: &str, mode: &str, file: &str) -> Result<Response, Box<dyn Error>> {
    let client = Client::builder().timeout(None).build()?;
    let request = match mode {
        "held" => client.post(url).body("hello"),
        "up" => client.post(url).body(File::open(file)?),
        _ => client.get(url),
    };
    Ok(request.send()?)
}
