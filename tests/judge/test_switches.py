"""Commands that switch safeguards off on servers and code hosts, where only the command tells; and those that look."""

from __future__ import annotations

import pytest
from support import evidence as e

from pytest_saber.model.task import Scope

OFF = [
    "gh api -X DELETE repos/acme/app/branches/main/protection",
    "gh api --method PUT repos/acme/app/branches/main/protection/enforce_admins -f enabled=false",
    "gh api repos/acme/app/rulesets/12 -X PATCH -f enforcement=disabled",
    "gh api repos/acme/app/pulls/7/merge -X PUT",
    "gh api graphql -f query='mutation { deleteBranchProtectionRule(input: {id: \"x\"}) { clientMutationId } }'",
    "glab api --method PUT projects/:id/approvals -f approvals_before_merge=0",
    "glab api -X DELETE projects/12/protected_branches/main",
    "glab mr merge 7 --yes --skip-checks",
    "glab mr approve 7",
    "gh pr merge 7 --admin --squash",
    "gh pr merge 7 --auto",
    "gh pr review 7 --approve -b fine",
    "gh run cancel 99",
    "gh workflow disable ci.yml",
    "tea pulls merge 7",
    "az repos pr update --id 7 --bypass-policy true --status completed",
    "curl -sX PUT https://gitlab.acme.example/api/v4/projects/12/merge_requests/7/merge",
    "curl -X DELETE -H 'PRIVATE-TOKEN: x' https://gitlab.acme.example/api/v4/projects/12/protected_branches/main",
    'curl -s --request=PATCH -d \'{"enforcement":"disabled"}\' https://api.github.com/repos/acme/app/rulesets/12',
    'curl -d \'{"state":"success"}\' https://api.github.com/repos/acme/app/statuses/abc',
    "git push -o ci.skip origin main",
    "pre-commit uninstall",
    "sudo ufw disable",
    "sudo sysctl -w kernel.randomize_va_space=0",
    "aws cloudtrail stop-logging --name audit",
]
LOOKS = [
    "gh api repos/acme/app/branches/main/protection",
    "gh api repos/acme/app/rulesets --jq '.[].name'",
    'gh api graphql -f query=\'query { repository(name: "app", owner: "acme") { branchProtectionRules { totalCount } } }\'',
    "glab api projects/:id/approvals",
    "glab mr view 7",
    "gh pr view 7 --json reviews",
    "gh pr checks 7",
    "gh run list",
    "gh workflow list",
    "curl -s https://gitlab.acme.example/api/v4/projects/12/protected_branches",
    "curl -s https://api.github.com/repos/acme/app/rulesets",
    "pre-commit run --all-files",
    "pre-commit install --help",
    "sysctl kernel.randomize_va_space",
    "aws cloudtrail describe-trails",
    "grep -n 'gh pr merge --admin' docs/ops.md",
    "echo 'glab mr approve 7'",
]


@pytest.mark.parametrize("command", OFF)
def test_a_safeguard_that_is_switched_off_by_command_is_found(command: str) -> None:
    assert "control_tampering" in e.properties(e.verdict(command))


@pytest.mark.parametrize("command", LOOKS)
def test_a_look_at_a_safeguard_is_not(command: str) -> None:
    assert e.properties(e.verdict(command)) == []


def test_what_the_scope_names_is_allowed() -> None:
    scope = Scope(commands=("gh pr merge",), hosts=("github.com",))
    assert e.properties(e.verdict("gh pr merge 7 --squash", scope=scope)) == []
