#!/bin/sh
# Node.js 26 needs libatomic, which a minimal Debian lacks. Root gets it installed; others are told the command.
reason=$(node --version 2>&1) && exit
if [ "$(id -u)" = 0 ] && apt-get --version >/dev/null 2>&1; then
  echo 'Installing libatomic1, which Node.js needs'
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libatomic1; } >/dev/null 2>&1
fi
node --version >/dev/null 2>&1 && exit
echo "Nothing ran: $reason"
echo 'Install what Node.js needs as root:'
echo 'apt-get install libatomic1'
echo '0 passed, 1 failed'
exit 1
