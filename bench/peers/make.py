"""Make the environments of the peers: `python -m bench.peers.make`; one that is not available is reported and left out."""

import shutil
import subprocess
import sys
import venv

from bench.peers import PEERS


def make(peer):
    """None, or why there is no such environment."""
    if peer.python.exists():
        return None
    folder = peer.python.parents[1]
    venv.create(folder, with_pip=True)
    command = [peer.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", peer.package]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return None
    shutil.rmtree(folder)
    return (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def main():
    for peer in PEERS:
        print(f"bench-peers: {peer.name} …", end=" ", flush=True)
        why = make(peer)
        print("ready" if why is None else f"left out: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
