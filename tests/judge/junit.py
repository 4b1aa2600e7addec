#!/usr/bin/python3
"""junit.py FILE BADGE CODE: whether a report of epctx-conformance is JUnit XML as build servers
read it (the schema of Jenkins, in short), and its badge shields.io's; both agree with the exit
code.

Prints what is wrong.
"""
import json
import re
import sys
import xml.etree.ElementTree

RESULTS = {"failure": {"message"}, "skipped": {"message"}, "system-out": set()}
COLORS = {0: "brightgreen", 1: "red", 4: "yellow"}


def wrong_in_case(case):
    """What is wrong with a test case."""
    if case.tag != "testcase" or set(case.attrib) != {"classname", "name"}:
        yield f"<{case.tag}> with {sorted(case.attrib)}"
    if len(case) > 1:
        yield f"{case.get('name')}: {len(case)} results"
    for result in case:
        if set(result.attrib) != RESULTS.get(result.tag) or len(result):
            yield f"{case.get('name')}: <{result.tag}> with {sorted(result.attrib)}"
        elif not (result.get("message") or result.text):
            yield f"{case.get('name')}: <{result.tag}> says nothing"


def count(suite, tag):
    return len(suite.findall(f"testcase/{tag}"))


def wrong_in_suite(suite):
    """What is wrong with the report."""
    if suite.tag != "testsuite" or set(suite.attrib) != {"name", "tests", "failures", "skipped"}:
        yield f"<{suite.tag}> with {sorted(suite.attrib)}"
        return
    for case in suite:
        yield from wrong_in_case(case)
    names = [(case.get("classname"), case.get("name")) for case in suite]
    if len(set(names)) != len(names):
        yield "a case is there twice"
    found = {"tests": len(suite), "failures": count(suite, "failure"),
             "skipped": count(suite, "skipped")}
    told = {key: int(suite.get(key)) for key in found}
    if told != found or not names or not suite.get("name"):
        yield f"the suite '{suite.get('name')}' tells {told}, and has {found}"


def wrong_in_badge(badge, suite, code):
    """What is wrong with the badge."""
    if set(badge) != {"schemaVersion", "label", "message", "color"} or badge["schemaVersion"] != 1:
        yield f"badge: {badge}"
        return
    failed = count(suite, "failure")
    passed = len(suite) - failed - count(suite, "skipped")
    message = re.match(r"(\d+) passed(?:, (\d+) failed)?(?:, (\d+) not judged)?$",
                       badge["message"])
    if not message or (int(message[1]), int(message[2] or 0)) != (passed, failed):
        yield f"badge: '{badge['message']}', with {passed} passed and {failed} failed"
    elif bool(message[3]) != any(s.get("message").startswith("not judged: ")
                                 for s in suite.iter("skipped")):
        yield f"badge: '{badge['message']}', not as in the report"
    if badge["color"] != COLORS.get(code):
        yield f"badge: {badge['color']}, with exit code {code}"


def main():
    suite = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
    with open(sys.argv[2], encoding="utf-8") as text:
        badge = json.load(text)
    wrong = [*wrong_in_suite(suite), *wrong_in_badge(badge, suite, int(sys.argv[3]))]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
