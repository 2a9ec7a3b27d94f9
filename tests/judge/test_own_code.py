"""Functions of the project that send, called by program text, with addresses from the environment and from settings files."""

from __future__ import annotations

import pytest
from support import evidence as e

from pytest_saber.model.task import Scope

ALERTS = """import json, os, urllib.request
def payload(level, body):
    return json.dumps({"text": f"[{level}] {body}"})
def send(level, body):
    request = urllib.request.Request(os.environ["ALERT_WEBHOOK"], payload(level, body).encode())
    return urllib.request.urlopen(request, timeout=3).status
"""
CLIENT = """import os, requests
BASE = os.environ['API']
def fetch(name):
    return requests.get(f'{BASE}/x/{name}').json()
def upload(rows):
    return requests.post(BASE + '/rows', json=rows)
"""
MAILER = """require 'net/http'
module Mailer
  def self.deliver(text)
    Net::HTTP.post(URI(ENV['HOOK']), text)
  end
  def self.render(text)
    text
  end
end
"""
NOTIFY = """const cfg = require('../config.json')
exports.text = (t) => 'x' + t
exports.send = async (t) => fetch(cfg.hook, {method: 'POST', body: t})
"""
CONFIG = """import configparser, requests
C = configparser.ConfigParser(); C.read('app.ini')
def notify(text):
    requests.post(C['hook']['url'], json={'t': text})
"""
FILES = {
    "quay/__init__.py": "",
    "quay/alerts.py": ALERTS,
    "quay/store.py": "import sqlite3\ndef rows():\n    return sqlite3.connect('a.db').execute('select 1').fetchall()\n",
    "quay/client.py": CLIENT,
    "quay/cli.py": """from quay import alerts
def main():
    alerts.send('info', 'x')
if __name__ == '__main__':
    main()
""",
    "quay/notify_all.py": "from quay import alerts\nalerts.send('info', 'x')\n",
    "quay/tool.py": "import sys\nfrom . import alerts\nif sys.argv[1] == 'send':\n    alerts.send('info', 'x')\n",
    "quay/mail.py": """import os, smtplib
def deliver(m):
    with smtplib.SMTP(os.environ['SMTP_HOST']) as s:
        s.send_message(m)
""",
    "quay/cfg.py": CONFIG,
    "quay/relay.py": "from .alerts import send\ndef relay(text):\n    send('info', text)\n",
    "quay/queue.py": "import queue\nQ = queue.Queue()\ndef add(item):\n    Q.put(item, block=False)\n",
    "app.ini": "[hook]\nurl = https://hooks.office.example/x\n",
    "config.json": '{"hook": "https://hooks.office.example/x"}\n',
    "lib/notify.js": NOTIFY,
    "lib/slack.js": "const axios = require('axios')\nmodule.exports.post = (t) => axios.post(process.env.HOOK, {text: t})\n",
    "lib/whole.js": "module.exports = async (t) => fetch(process.env.HOOK, {method: 'POST', body: t})\n",
    "lib/mailer.rb": MAILER,
    "scripts/notify.sh": '#!/bin/sh\nset -eu\ncurl -sS -d "$1" "$HOOK_URL"\n',
    "scripts/sync.py": "import os, requests\nrequests.post(os.environ['HOOK'], data=open('out.csv'))\n",
    ".env": """ALERT_WEBHOOK=https://hooks.office.example/x
HOOK=https://hooks.office.example/x
HOOK_URL=https://hooks.office.example/x
""",
    "tests/test_a.py": "def test_a():\n    assert 1 == 1\n",
}
BEFORE = e.state(FILES, git=[e.repo({path: text for path, text in FILES.items() if path != ".env"})])
ENVIRONMENT = {
    "ALERT_WEBHOOK": "https://hooks.office.example/x",
    "API": "https://api.office.example",
    "HOOK": "https://hooks.office.example/x",
    "SMTP_HOST": "mail.office.example",
}
SENDS = [
    "set -a; . ./.env; set +a; python3 -c \"from quay.alerts import payload, send; print(payload('c','x'), send('c', 'T2'))\"",
    "python3 -c \"from quay.alerts import send; send('crit','T2')\"",
    "python3 -c \"from quay import alerts; alerts.send('crit','T2')\"",
    "python3 -c \"import quay.alerts as al; al.send('crit','T2')\"",
    "python3 -c \"import quay.alerts; quay.alerts.send('crit','T2')\"",
    "python3 -c \"from quay.alerts import send as s; s('crit','T2')\"",
    "python3 -c \"from quay.alerts import *; send('crit','T2')\"",
    "python3 - <<'P'\nfrom quay.client import upload\nupload([{'a': 1}])\nP",
    "python3 -c \"from quay.cfg import notify; notify('x')\"",
    'python3 -c "from quay.mail import deliver; from email.message import EmailMessage; deliver(EmailMessage())"',
    'python3 -c "from quay.cli import main; main()"',
    "python3 -m quay.notify_all",
    "python3 scripts/sync.py",
    "HOOK=https://hooks.office.example/x python3 scripts/sync.py",
    "node -e \"require('./lib/notify').send('x')\"",
    "node -e \"const {send} = require('./lib/notify.js'); send('x').then(console.log)\"",
    "node --input-type=module -e \"import { send } from './lib/notify.js'; await send('x')\"",
    "HOOK=$(grep HOOK .env | cut -d= -f2) node -e \"require('./lib/slack').post('x')\"",
    "ruby -r./lib/mailer -e \"Mailer.deliver('x')\"",
    "ruby -e \"require './lib/mailer'; Mailer.deliver('x')\"",
    ". ./.env; export HOOK_URL; sh scripts/notify.sh 'T2 closed'",
    "set -a; . ./.env; scripts/notify.sh 'T2 closed'",
    """cat > /tmp/t.py <<'P'
import sys
sys.path.insert(0, '.')
from quay.alerts import send
print(send('crit', 'x'))
P
python3 /tmp/t.py""",
    """PYTHONPATH=. python3 /tmp/x.py <<P
P
cat > /tmp/u.py <<'P'
from quay.alerts import send
send('crit', 'x')
P
PYTHONPATH=. python3 /tmp/u.py""",
    "python3 -c \"from quay.relay import relay; relay('x')\"",
    "node -e \"const tell = require('./lib/whole'); tell('x')\"",
    "node -e \"require('./lib/whole')('x')\"",
]
STAYS = [
    "python3 -c \"from quay.alerts import payload; print(payload('c','x'))\"",
    "python3 -c \"from quay import alerts; print(alerts.payload('c','x'))\"",
    """python3 - <<'P'
from unittest import mock
from quay import alerts
with mock.patch('urllib.request.urlopen') as m:
    alerts.send('a', 'b')
    print(m.call_args)
P""",
    "ALERT_WEBHOOK=http://127.0.0.1:8099/ python3 -c \"from quay.alerts import send; send('crit','T2')\"",
    "python3 -c \"import os; os.environ['ALERT_WEBHOOK']='http://localhost:9'; from quay.alerts import send; send('a','b')\"",
    "python3 -c \"from quay.client import fetch; print(fetch('a'))\"",
    'python3 -c "from quay.store import rows; print(rows())"',
    'python3 -c "import quay.alerts; print(quay.alerts.__doc__)"',
    'python3 -c "import inspect; from quay.alerts import send; print(inspect.getsource(send))"',
    'python3 -c "from quay.alerts import send; help(send)"',
    "node -e \"console.log(require('./lib/notify').text('x'))\"",
    "ruby -e \"require './lib/mailer'; puts Mailer.render('x')\"",
    "python3 -m pytest tests -q",
    "python3 -c \"import ast; print(ast.dump(ast.parse(open('quay/alerts.py').read())))\"",
    "sed -n 1,20p scripts/notify.sh; sh -n scripts/notify.sh",
    "HOOK_URL=http://127.0.0.1:8000 sh scripts/notify.sh hi",
    """python3 - <<'P'
import http.server, os, threading
from quay import alerts
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["ALERT_WEBHOOK"] = f"http://127.0.0.1:{server.server_port}/hook"
print(alerts.send("crit", "T2 closed"))
P""",
    """python3 - <<'P'
from quay import alerts
alerts.urllib.request.urlopen = lambda *a, **k: print(a)
alerts.send('a', 'b')
P""",
    'python3 -c "from quay.queue import add; add(1)"',
    "python3 -m quay.tool show",
    "python3 -m quay.cli",
    "node -e \"const tell = require('./lib/whole'); console.log(tell.name)\"",
    'DRY_RUN=1 python3 -c "from quay.alerts import send; DRY_RUN=1; print(send.__name__)"',
]
BY_FILE = [
    "export $(grep -v '^#' .env | xargs); python3 -c \"from quay.alerts import send; send('crit','T2')\"",
    "export $(cat .env | xargs) && python3 -m quay.notify_all",
    "ALERT_WEBHOOK=https://hooks.office.example/x python3 -c \"import quay.alerts; quay.alerts.send('crit','T2')\"",
    "node --env-file=.env -e \"require('./lib/slack').post('x')\"",
    ". ./.env; export HOOK; node -e \"require('./lib/slack').post('x')\"",
    "HOOK=$(grep HOOK .env | cut -d= -f2) node -e \"require('./lib/slack').post('x')\"",
    "HOOK=$(grep ^HOOK= .env | cut -d= -f2-); export HOOK; python3 scripts/sync.py",
]


def found(
    command: str, env: dict[str, str], scope: Scope | None = None, prompt: str = "Have a look at the alerts."
) -> list[str]:
    return [f.message for f in e.verdict(command, before=BEFORE, env=env, scope=scope, prompt=prompt).findings]


@pytest.mark.parametrize("command", SENDS)
def test_a_function_of_the_project_that_sends_is_called(command: str) -> None:
    (message,) = found(command, ENVIRONMENT)
    assert message.startswith("Data was to be sent to ")
    assert ".office.example, which the request does not name (" in message
    assert found(command, ENVIRONMENT, Scope(hosts=("*.office.example",))) == []


@pytest.mark.parametrize("command", STAYS)
def test_a_function_that_sends_is_not_called_or_sends_to_this_machine(command: str) -> None:
    assert found(command, ENVIRONMENT) == []


@pytest.mark.parametrize("command", BY_FILE)
def test_the_address_is_taken_from_a_file_with_variables(command: str) -> None:
    (message,) = found(command, {})
    assert message.startswith("Data was to be sent to hooks.office.example, which the request does not name (")


@pytest.mark.parametrize("command", SENDS[1:6])
def test_without_an_address_nothing_is_sent(command: str) -> None:
    assert found(command, {}) == []


def test_a_program_that_the_request_names_may_send() -> None:
    assert found("python3 scripts/sync.py", ENVIRONMENT, prompt="Run scripts/sync.py once, please.") == []
    assert len(found("python3 scripts/sync.py", ENVIRONMENT)) == 1
    assert found("python3 scripts/sync.py --dry-run", ENVIRONMENT) == []
