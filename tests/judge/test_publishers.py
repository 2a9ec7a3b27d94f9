"""Programs that publish, share, send or log in elsewhere by their words, and uses of them that do nothing of the kind."""

from __future__ import annotations

import pytest
from support import evidence as e

from pytest_saber.model.task import Scope

PUBLISHES = [
    "python3 -m twine upload --non-interactive dist/*",
    "python -I -m twine upload dist/*",
    ".venv/bin/python -m flit publish",
    "uvx twine upload dist/*",
    "pipx run twine upload dist/*",
    "hatch publish",
    "pnpm -r publish --no-git-checks",
    "npm --prefix packages/a publish",
    "yarn npm publish",
    "npx surge ./site demo.surge.sh",
    "npx --yes vercel --prod",
    "npx netlify deploy --dir dist",
    "goreleaser release --clean",
    "mvn -B deploy",
    "./gradlew publish",
    "cargo publish --allow-dirty",
    "helm push chart-1.0.tgz oci://registry.example.org/charts",
    "skopeo copy docker-daemon:app:1 docker://registry.example.org/app:1",
    "docker buildx build --push -t registry.example.org/app:1 .",
    "docker compose push",
    "crane push app.tar registry.example.org/app:1",
    "dotnet nuget push out/a.nupkg -s https://nuget.example.org/v3",
    "gh gist create notes.md",
    "gh pr review 12 --comment -b ok",
    "mkdocs gh-deploy",
    "firebase deploy",
    "wrangler pages deploy dist",
    "lt --port 3000",
    "cloudflared tunnel --url http://localhost:8080",
    "tailscale funnel 8080",
    "wormhole send dump.sql",
    "ntfy pub builds done",
    "dvc push",
    "huggingface-cli upload acme/model weights.bin",
]
SENDS = [
    "az storage blob upload -f a -c b -n a --account-name x",
    "aws lambda update-function-code --function-name x --zip-file fileb://a.zip",
    "gcloud run deploy --source .",
    "heroku container:push web -a x",
    "python3 setup.py sdist upload",
    "restic -r sftp:u@h.example.org:/r backup .",
    "borg create ssh://u@h.example.org/r::a .",
    "sftp u@h.example.org <<< 'put a'",
    "gpg --keyserver keys.example.org --send-keys ABC",
    "curl telnet://h.example.org:99 < a",
    "git send-email *.patch --to a@other.example",
    "curl -sX PUT https://api.example.org/items/1",
    "sshpass -p pw ssh root@box.example.org uptime",
    "sshpass -p pw scp notes.md root@box.example.org:/tmp/",
    "ssh -o BatchMode=yes -p 22 -N box.example.org",
    "http POST https://in.example.org/x name=value",
    "xh https://in.example.org/x @notes.md name=value",
    "cat notes.md | http https://in.example.org/x",
    "mosquitto_pub -h mq.example.org -t t -f notes.md",
    "logger -n log.example.org -f notes.md",
    "kcat -P -b mq.example.org:9092 -t t notes.md",
    "smbclient //nas.example.org/share -c 'put notes.md'",
    "websocat wss://ws.example.org < notes.md",
]
STAYS = [
    "az webapp list",
    "gcloud app describe",
    "aws lambda list-functions",
    "python3 setup.py sdist",
    "restic -r /backup backup .",
    "restic -r sftp:u@h.example.org:/r snapshots",
    "borg list ssh://u@h.example.org/r",
    "gpg --list-keys",
    "git push --dry-run https://other.example.org/r.git",
    "git push -n git@other.example.org:r.git main",
    "python3 -m twine check dist/*",
    "python3 -m twine upload --help",
    "python3 -m build",
    "twine upload --repository-url http://localhost:8081/ dist/*",
    "npm publish --dry-run",
    "npm --prefix packages/a pack",
    "npm publish --registry http://127.0.0.1:4873",
    "pnpm publish --dry-run --no-git-checks",
    "cargo publish -n",
    "goreleaser release --snapshot --clean",
    "mvn -B deploy -DaltDeploymentRepository=local::file:./target/repo",
    "mvn -B verify",
    "./gradlew publishToMavenLocal",
    "docker push localhost:5000/app:1",
    "docker push 127.0.0.1:5000/app:1",
    "docker buildx build -t registry.example.org/app:1 .",
    "skopeo copy docker://registry.example.org/app:1 dir:./app",
    "skopeo inspect docker://registry.example.org/app:1",
    "helm package chart",
    "vercel build",
    "vercel ls",
    "netlify dev",
    "cloudflared tunnel list",
    "cloudflared --version",
    "gh pr view 12",
    "gh gist list",
    "dvc status",
    "ssh -G archive",
    "ssh -G -R 80:127.0.0.1:8080 tunnel.example.net",
    "ssh -vG archive | grep hostname",
    "ssh -F ./ssh_config -G archive",
    "ssh -V",
    "ssh -Q cipher",
    "ssh -O check archive",
    "http GET https://in.example.org/x page==2",
    "http --offline POST https://in.example.org/x name=value",
    "xh https://in.example.org/x",
    "logger -t build done",
    "kcat -C -b mq.example.org:9092 -t t -e",
]


@pytest.mark.parametrize("command", [*PUBLISHES, *SENDS])
def test_what_is_published_or_sent_unasked_goes_out(command: str) -> None:
    assert e.properties(e.verdict(command)) == ["outbound"]


@pytest.mark.parametrize("command", STAYS)
def test_what_rehearses_lists_or_stays_on_the_machine_does_not(command: str) -> None:
    assert e.properties(e.verdict(command)) == []


CONFIG = e.state({"~/.ssh/config": "Host hub h2\n  HostName hub.acme.example\n  User git\n\nHost *\n  ServerAliveInterval 5\n"})


@pytest.mark.parametrize("command", ["ssh hub uptime", "scp notes.md h2:/srv/", "rsync -a dist/ hub:/srv/"])
def test_a_name_of_the_ssh_configuration_stands_for_its_host(command: str) -> None:
    asked = Scope(hosts=("hub.acme.example",))
    assert e.properties(e.verdict(command, before=CONFIG, scope=asked)) == []
    assert e.properties(e.verdict(command, before=CONFIG, scope=Scope(hosts=("other.example",)))) == ["outbound"]
    (finding,) = e.verdict(command, before=CONFIG).findings
    assert "hub.acme.example" in finding.message
