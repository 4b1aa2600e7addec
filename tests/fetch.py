"""What tests/deps.sh does in Python, of the standard library alone.

    fetch.py npm NAME VERSION FILE       download the tarball of a package, where there is no npm
    fetch.py unpack WHEEL FOLDER PART... put the members whose names begin with a PART into FOLDER
    fetch.py whole WHEEL FOLDER          all of it, as it is
    fetch.py older FILE                  what this Python lacks of the requirements in FILE

For npm: the registry, proxies and certificates are those of npm's variables (npm_config_registry,
...), of ~/.npmrc and of the environment (https_proxy, SSL_CERT_FILE, NODE_EXTRA_CA_CERTS).
"""
import json
import os
import re
import shutil
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
import zipfile

SECONDS = 5  # for an answer


def npm_settings():
    """What ~/.npmrc says, below what the environment says."""
    settings = {}
    path = os.environ.get("npm_config_userconfig") or os.path.expanduser("~/.npmrc")
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                key, equals, value = line.strip().partition("=")
                if equals and not key.startswith(("#", ";")):
                    value = re.sub(r"\$\{(\w+)\}", lambda m: os.environ.get(m.group(1), ""), value)
                    settings[key.strip().lower()] = value.strip().strip("\"'")
    except OSError:
        pass  # there need not be one
    for name, value in os.environ.items():
        if name.lower().startswith("npm_config_") and value:
            settings[name.lower()[len("npm_config_"):].replace("_", "-")] = value
    return settings


def opener(settings):
    context = ssl.create_default_context()
    for path in (settings.get("cafile"), os.environ.get("NODE_EXTRA_CA_CERTS")):
        if path:
            context.load_verify_locations(path)
    proxies = urllib.request.getproxies()
    for scheme, keys in (("https", ("https-proxy", "proxy")), ("http", ("proxy",))):
        for key in keys:
            if settings.get(key, "null") != "null":
                proxies[scheme] = settings[key]
                break
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context),
                                       urllib.request.ProxyHandler(proxies))


def npm(name, version, file):
    settings = npm_settings()
    registry = settings.get("registry", "https://registry.npmjs.org/").rstrip("/") + "/"
    web = opener(settings)
    header = {"User-Agent": "npm"}
    token = settings.get("//" + registry.split("://", 1)[-1] + ":_authtoken")
    if token:
        header["Authorization"] = "Bearer " + token
    url = f"{registry}{urllib.parse.quote(name, safe='@')}/{version}"
    with web.open(urllib.request.Request(url, headers=header), timeout=SECONDS) as answer:
        tarball = json.load(answer)["dist"]["tarball"]
    with web.open(urllib.request.Request(tarball, headers=header), timeout=SECONDS) as answer:
        print(f"answer: {tarball}", flush=True)
        with open(file, "wb") as out:
            shutil.copyfileobj(answer, out)


def unpack(wheel, folder, *parts):
    with zipfile.ZipFile(wheel) as members:
        for member in members.namelist():
            if member.startswith(parts) and not member.endswith("/"):
                with members.open(member) as data, \
                        open(os.path.join(folder, os.path.basename(member)), "wb") as out:
                    shutil.copyfileobj(data, out)


def whole(wheel, folder):
    with zipfile.ZipFile(wheel) as members:
        members.extractall(folder)


def numbers(version):
    return [int(n) for n in re.findall(r"\d+", version)]


def older(file):
    from importlib import metadata
    with open(file, encoding="utf-8") as lines:
        wanted = re.findall(r"^([\w-]+)==([\w.]+)", lines.read(), re.M)
    lacks = []
    for name, version in wanted:
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = "none"
        if found == "none" or numbers(found) < numbers(version):
            lacks.append(f"{name} {version} (found: {found})")
    print(", ".join(lacks) or "nothing")


def main():
    try:
        {"npm": npm, "unpack": unpack, "whole": whole, "older": older}[sys.argv[1]](*sys.argv[2:])
    except json.JSONDecodeError:
        sys.exit("ERROR: the answer is not of a registry of npm")
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        sys.exit(f"ERROR: {error}")


if __name__ == "__main__":
    main()
