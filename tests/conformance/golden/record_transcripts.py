"""Record what PyTorch answers to the lines of ``tests/transcripts``: ``python -m tests.conformance.golden.record_transcripts`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.transcripts import TOPICS, answers


def main() -> None:
    found = {topic: answers(torch, topic) for topic in TOPICS}
    texts = [f"{json.dumps(topic)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]" for topic, rows in found.items()]
    path = Path(__file__).with_name("transcripts.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "answers": {{\n' + ",\n".join(texts) + "\n}}\n")
    print(f"{path.name}: {sum(map(len, found.values()))} answers, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
