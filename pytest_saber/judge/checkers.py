"""Which files hold the settings of tools that check: coverage, linters, scanners, policies, licences, performance budgets."""

from __future__ import annotations

import bisect
import posixpath
import re

from pytest_saber.model import globs

_OWN = globs.Table(
    (glob, True)
    for glob in """
    .coveragerc .c8rc* .nycrc* nyc.config.* c8.config.* codecov.y*ml .codecov.y*ml .coveralls.yml coveralls.json
    .octocov.y*ml .testcoverage.y*ml tarpaulin.toml .tarpaulin.toml phpunit*.xml* .lcovrc gcovr.cfg .luacov .slather.yml
    .xcovignore .solcover.* *.runsettings coverlet*.json sonar-project.properties .sonarcloud.properties .simplecov
    jest.config.* vitest.config.* vitest.workspace.* karma.conf.* .mocharc* .ava* ava.config.* bunfig.toml
    playwright.config.* cypress.config.* wdio.conf.* stryker.conf* infection.json* mull.yml .mutmut* cosmic-ray.toml
    pytest.ini tox.ini mypy.ini .mypy.ini ruff.toml .ruff.toml .flake8 .pylintrc* pylintrc pyrightconfig.json .eslintrc*
    eslint.config.* .golangci.* .codeclimate.y*ml .codacy.y*ml .deepsource.toml .scrutinizer.yml qodana.yaml
    codeql-config.y*ml .semgrep.y*ml semgrep.y*ml .bearer.y*ml bearer.yml .gosec* .kube-linter.y*ml kube-linter*.y*ml
    .polaris* polaris.y*ml .terrascan* terrascan.toml .regula.y*ml .cfnlintrc* .cfn-lint* .cfn_nag* .spectral.*
    redocly.yaml .redocly.* buf.yaml buf.*.yaml .sqlfluff deny.toml audit.toml .cargo-audit* .bundler-audit.yml .brakeman*
    brakeman.yml .licrc .licensed.y*ml .license_finder* license-check*.* .licenserc.* .fossa.y*ml
    dependency-review-config.y*ml .ggshield.y*ml .gitguardian.y*ml .secretlintrc* .whispers.y*ml .detect-secrets*
    trivy*.y*ml .grype.y*ml .checkov.y*ml .tfsec.* .tflint.hcl .hadolint.y*ml .dockle* .yamllint* .ansible-lint*
    .markdownlint* .vale.ini .codespellrc typos.toml _typos.toml .typos.toml cspell.* .commitlintrc* commitlint.config.*
    .lighthouserc* lighthouserc.* .pa11yci* .size-limit.* .bundlewatch* zap*.conf zap*.tsv .rubocop*.yml .reek.yml
    .standard.yml phpstan*.neon* psalm*.xml* phpcs*.xml* .php-cs-fixer* phpmd*.xml phpinsights.php deptrac*.y*ml
    checkstyle*.xml pmd*.xml spotbugs*.xml findbugs*.xml detekt*.y*ml .editorconfig-checker.json .ecrc lint.xml
    .swiftlint.yml .swiftformat analysis_options.yaml .credo.exs .dialyzer_ignore.exs biome.json* .oxlintrc.json
    .stylelintrc* stylelint.config.* .jscpd.json .clang-tidy .cppcheck* .luacheckrc .hlint.yaml .lintr revive.toml
    staticcheck.conf slither.config.json .solhint.json tsconfig*.json jsconfig.json .pre-commit-config.yaml
    .overcommit.yml lefthook.y*ml .lintstagedrc* lint-staged.config.* grumphp.y*ml .mega-linter.yml .trunk.yaml
    .ls-lint.yml .dependency-cruiser.* knip.json* .knip.json* .scalafix.conf .scalafmt.conf .prospector.y*ml bandit.y*ml
    .bandit sentinel.hcl .conftest* conftest.toml .mergify.yml bors.toml kustomize-policy*.y*ml .kics* kics.*
    audit-ci.json* .snyk .nsprc .retireignore.json .allstar* scorecard.y*ml .openssf* renovate.json* .clippy.toml
    clippy.toml .vacuum* .schemathesis.toml elm-review* .shellcheckrc .perlcriticrc .proselintrc* .textlintrc* .htmlhintrc
    .djlintrc .erb-lint.yml .haml-lint.yml .slim-lint.yml .puppet-lint.rc .cookstyle.yml .foodcritic .tfsec.yml
    .terraform-docs* .jscsrc .jshintrc tslint.json .sqruff .rstcheck.cfg
    """.split()  # noqa: SIM905
)
_SHARED = globs.Table(
    (glob, True)
    for glob in """
    pyproject.toml setup.cfg package.json pom.xml *.gradle *.gradle.kts build.sbt mix.exs project.clj rebar.config
    composer.json Cargo.toml deno.json* .luarocks *.csproj Directory.Build.props Rakefile spec_helper.rb rails_helper.rb
    test_helper.rb CMakeLists.txt meson.build dune-project foundry.toml Package.swift pubspec.yaml dub.json
    """.split()  # noqa: SIM905
)
_ACCEPTED = globs.Table(
    (glob, True)
    for glob in """
    .auditignore .dockleignore .bearerignore .retireignore .secretlintignore .nancy-ignore .lycheeignore
    .cvsignore-security .ansible-lint-ignore .sqlfluffignore .tflintignore .cfnlintignore .rubocop_todo.yml .reek_todo.yml
    .haml-lint_todo.yml phpstan-baseline* psalm-baseline.xml detekt-baseline*.xml baseline-detekt*.xml lint-baseline.xml
    ktlint-baseline.xml eslint-suppressions.json .betterer.results mypy-baseline* .mypy-baseline* brakeman.ignore
    *suppression*.xml *suppress*.json spotbugs-exclude*.xml findbugs-exclude*.xml checkstyle-suppressions*.xml
    dependency_decisions.yml vuln*-allow* *allowlist* *allow-list* .allowlist* cve-ignore* .cve* ignored-vulnerabilities*
    *waiver* .redocly.lint-ignore.yaml .dialyzer_ignore.exs .pyre_ignore* .pylint-baseline* .basedpyright baseline.json
    security-exceptions* policy-exceptions* *exemptions* .gosecignore .govulncheck* vex.json *.vex.json *.openvex.json
    .kics-ignore* .tfsec-ignore* .snyk-ignore* .detect-secrets-ignore* .gitguardianignore .ggshieldignore
    """.split()  # noqa: SIM905
)
_POLICY = re.compile(
    r"^apiVersion:\s*['\"]?(?:kyverno\.io|wgpolicyk8s\.io|constraints\.gatekeeper\.sh|config\.gatekeeper\.sh|templates\.gatekeeper\.sh|"
    r"policy\.open-cluster-management|admissionregistration\.k8s\.io|policies\.kubewarden\.io|cilium\.io)",
    re.MULTILINE,
)
_HEADING = re.compile(
    r"^\[+\s*([^\]\n]{1,80})\]|\"([\w.@/-]{1,40})\"\s{0,4}:\s{0,4}\{|<artifactId>([^<]{1,80})</|"
    r"^[ \t]{0,40}(?:tasks\.)?([\w.:(\"')-]{1,60})[ \t]{0,4}(?:do\s*)?\{\s*$|"
    r"\b(test_coverage|SimpleCov)\b",
    re.MULTILINE,
)
_CHECKS = re.compile(
    r"coverage|cov\b|jacoco|kover|jest|nyc|\bc8\b|vitest|mocha|\bava\b|eslint|stylelint|\bxo\b|lint|sonar|spotbugs|pmd|checkstyle|detekt|"
    r"dependency-?check|owasp|enforcer|errorprone|pitest|ruff|mypy|flake8|pylint|bandit|pyright|pytest|isort|vulture|interrogate|"
    r"deptry|pip-audit|SimpleCov|scoverage|cloverage|dialyz|credo|spotless|forbidden|license|prettier|clippy|deny|audit|surefire|failsafe|junit|testing",
    re.IGNORECASE,
)
_NEAR = 3_000


def is_checker(path: str, text: str) -> bool:
    """A file of settings that belongs to a tool which checks, or a policy of a cluster."""
    name = posixpath.basename(path)
    if _OWN.find(name) or "/.semgrep/" in path or "/.tfsec/" in path or "/codeql/" in path:
        return True
    return name.endswith((".yaml", ".yml")) and _POLICY.search(text[:200_000]) is not None


def is_shared(path: str) -> bool:
    """A file in which a part may belong to such a tool."""
    return _SHARED.find(posixpath.basename(path)) is not None


def is_list_of_accepted(path: str) -> bool:
    """A file that only says which findings count no more."""
    return _ACCEPTED.find(posixpath.basename(path)) is not None


class Parts:
    """Of a shared file: its headings, by which a part belongs to a tool that checks or to something else."""

    def __init__(self, text: str) -> None:
        found = list(_HEADING.finditer(text))
        self._starts = [match.start() for match in found]
        self._checks = [_CHECKS.search(next(group for group in match.groups() if group)) is not None for match in found]
        # A section lasts until the next one; other blocks may stand in each other.
        self._above = 1 if re.search(r"^\[", text, re.MULTILINE) and "{\n" not in text and "<artifactId>" not in text else 4

    def checks(self, position: int) -> bool:
        """Whether what stands at `position` belongs to a tool that checks."""
        last = bisect.bisect_right(self._starts, position)
        above = range(max(0, last - self._above), last)
        return any(self._checks[place] and (self._above == 1 or position - self._starts[place] < _NEAR) for place in above)
