"""Names of packages that are a slip away from a well-known one or from one of the project, as strangers register them."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator

from pytest_saber.judge.diff import added_lines
from pytest_saber.judge.shell.model import Command

_KNOWN = {
    "pip": frozenset(
        """
        requests urllib3 numpy pandas scipy scapy matplotlib flask django fastapi starlette pydantic sqlalchemy
        alembic celery redis pytest tox coverage mypy black flake8 pylint isort ruff click typer rich tqdm jinja2
        markupsafe werkzeug gunicorn uvicorn httpx aiohttp boto3 botocore s3transfer cryptography pyopenssl paramiko
        fabric ansible pymssql pyaml cchardet httpr spython schedula gsutil dataset willow unicorn bpython grequests
        fastai python setuptools wheel twine virtualenv pipenv poetry python-dateutil dateutils pytz tzdata tzlocal
        pyyaml toml tomli simplejson orjson ujson lxml beautifulsoup4 selenium scrapy playwright pillow opencv-python
        scikit-learn tensorflow keras torch torchvision transformers tokenizers datasets psycopg2 psycopg2-binary
        psycopg asyncpg pymysql mysqlclient pymongo motor elasticsearch kafka-python pika grpcio protobuf attrs cattrs
        marshmallow jsonschema openpyxl xlrd docopt colorama termcolor loguru structlog sentry-sdk python-dotenv
        dotenv environs markdown mistune sphinx mkdocs jupyter notebook ipython ipykernel nbconvert networkx sympy
        statsmodels seaborn plotly dash streamlit gradio langchain openai anthropic tiktoken huggingface-hub
        websockets websocket-client apscheduler schedule watchdog psutil pexpect tabulate humanize faker factory-boy
        freezegun responses hypothesis mock nose gevent greenlet eventlet trio anyio certifi idna chardet
        charset-normalizer packaging pluggy cachetools filelock
        """.split()  # noqa: SIM905
    ),
    "npm": frozenset(
        """
        gaxios enquirer colord crypt scrypt mquery graphiql ttypescript jslint dtslint react preact react-dom
        reactstrap redux react-redux react-router react-router-dom next nuxt vue vuex pinia svelte angular lodash
        lodash-es underscore ramda axios request superagent got node-fetch cross-fetch express koa fastify hapi
        restify body-parser cookie-parser cors helmet morgan passport jsonwebtoken bcrypt bcryptjs mongoose mongodb
        sequelize typeorm prisma knex mysql mysql2 sqlite3 redis ioredis socket.io socket.io-client webpack
        webpack-cli rollup parcel vite esbuild babel typescript ts-node tslint eslint prettier stylelint jest mocha
        chai sinon jasmine karma vitest cypress playwright puppeteer nodemon pm2 concurrently cross-env dotenv
        commander yargs inquirer chalk colors color ora moment momentjs momento dayjs date-fns luxon uuid nanoid
        classnames styled-components tailwindcss postcss autoprefixer bootstrap jquery three chart.js graphql
        apollo-client apollo-server electron sharp jimp multer nodemailer winston bunyan debug rimraf mkdirp glob
        minimist semver async bluebird rxjs immutable immer zod joi validator marked highlight.js cheerio jsdom
        prop-types husky lint-staged lerna turbo event-stream through2 ws open
        """.split()  # noqa: SIM905
    ),
}
_FAMILIES = {
    "pip": ("pip", "pipx", "uv", "uvx", "poetry", "pipenv", "pdm"),
    "npm": ("npm", "npx", "yarn", "pnpm", "bun", "bunx"),
}
_VERBS = frozenset({"install", "i", "add", "download"})
_RUNS = frozenset({"run", "dlx", "exec", "x"})
"""What these are followed by is one package, for `pipx` and the package managers of Node."""
_RUNS_NAME = frozenset({"npx", "uvx", "bunx"})
_REQUIREMENT = re.compile(r"[ \t]*[\"']?(@?[A-Za-z][\w.@/-]{3,60}?)[\"']?\s*(?:\[[^\]\n]{0,80}\])?\s*(?:[=<>~!^;,]|\Z|[\"'])")
_MANIFESTS = {
    "pip": re.compile(r"(?:requirements|constraints)[\w.-]{0,200}\.(?:txt|in)|pyproject\.toml|Pipfile"),
    "npm": re.compile(r"package\.json"),
}
_LONG = 6
_SHORT_TARGETS = frozenset(["tqdm", "numpy", "flask", "redis", "boto3", "react", "axios", "chalk", "httpx", "click", "scipy"])
"""Names of fewer letters that strangers imitate all the same."""
_MAX_LINES = 300
_MAX_NAMES = 5_000


def by_command(
    command: Command, project: Iterable[str], prompt: str, answers: dict[str, str | None]
) -> Iterator[tuple[str, str]]:
    """`(name, the name that was likely meant)` of packages that the command installs. `project`: names that it uses.
    `answers`: what was found of the names of earlier commands."""
    words = [word for word in command.words if not word.startswith("-")]
    family = next((name for name, programs in _FAMILIES.items() if command.program in programs), "")
    if command.program.startswith("python") and "-m" in command.words and "pip" in words:
        family = "pip"
    if not family:
        return
    known = _KNOWN[family] | {*project}
    for word in _named(command.program, words)[:_MAX_LINES]:
        name = re.split(r"(?<=.)[@=<>~!\[;^]", word)[0].lower()
        key = f"{family} {name}"
        if key not in answers:
            answers[key] = _meant(name, known) if len(answers) < _MAX_NAMES else None
        if (meant := answers[key]) is not None and name not in prompt.lower():
            yield name, meant


def _named(program: str, words: list[str]) -> list[str]:
    """The packages among the words that are no options."""
    if program in _RUNS_NAME:
        return words[:1]
    for position, word in enumerate(words):
        if word in _VERBS:
            return words[position + 1 :]
        if word in _RUNS and (program == "pipx" or word != "run"):
            return words[position + 1 : position + 2]
    return []


def by_file(path: str, before: str, after: str, project: Iterable[str], prompt: str) -> Iterator[tuple[str, str]]:
    """The same of new lines of a list of dependencies."""
    base = posixpath.basename(path)
    family = next((name for name, pattern in _MANIFESTS.items() if pattern.fullmatch(base)), None)
    if family is None:
        return
    known = _KNOWN[family] | {*project}
    names = _packages(after) - _packages(before) if family == "npm" else set(_listed(added_lines(before, after)))
    for name in sorted(names)[:_MAX_LINES]:
        if (meant := _meant(name, known)) is not None and name not in prompt.lower():
            yield name, meant


def _listed(lines: list[str]) -> Iterator[str]:
    for line in lines[:_MAX_LINES]:
        match = _REQUIREMENT.match(line[:200])
        if match is not None and not line.startswith("#"):
            yield match[1].lower()


def _packages(text: str) -> set[str]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return set()
    parts = document if isinstance(document, dict) else {}
    groups = [parts.get(key) for key in ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")]
    return {str(name).lower() for group in groups if isinstance(group, dict) for name in group}


def names_of(text: str, path: str) -> set[str]:
    """The names that a list of dependencies holds."""
    return _packages(text) if path.endswith("package.json") else {*_listed(text.splitlines())}


def _meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that is one slip away: a letter more, less, other or swapped with the next, or another separator."""
    names = known if isinstance(known, frozenset) else frozenset(known)
    bare = name.replace("_", "-")
    if len(name) < _LONG - 1 or len(name) > 60 or name in names or bare in names or name.startswith("@"):
        return None
    for slip in _slips(bare):
        likely = len(slip) >= _LONG or slip in _SHORT_TARGETS
        if slip in names and likely and re.sub(r"[\d.-]", "", slip) != re.sub(r"[\d.-]", "", bare):
            return slip
    return None


def _slips(name: str) -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for place in range(len(name) + 1):
        head, tail = name[:place], name[place:]
        if tail:
            yield head + tail[1:]
            yield from (head + letter + tail[1:] for letter in letters)
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]
        yield from (head + letter + tail for letter in letters)
