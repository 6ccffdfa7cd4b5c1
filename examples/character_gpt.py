"""A character-level GPT, trained on the pages of this project's documentation.

    retrograd run examples/character_gpt.py [--steps 400] [--resume character_gpt.pt]

A decoder of two blocks (causal attention, then a small network), trained with AdamW and a cosine schedule on docs/*.md.
Prints the loss and at the end a generated passage, and plots the loss (character_gpt.png). Ctrl-C saves
character_gpt.pt for --resume.
Needs tqdm, and matplotlib for the picture: pip install ".[examples]".
"""

import argparse
import math
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

LENGTH, WIDTH, HEADS, BLOCKS, BATCH = 64, 64, 4, 2, 16
PAGES = Path(__file__).resolve().parent.parent / "docs"
STYLE = Path(__file__).resolve().parent / "data" / "pictures.mplstyle"


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self):
        super().__init__()
        self.into = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        query, key, value = self.into(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    """Attention and a network of one hidden layer, each with a residual connection."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.network = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.network(self.second(x))


class Writer(nn.Module):
    """The logits of the next letter, for each letter of a text."""

    def __init__(self, letters):
        super().__init__()
        self.letter = nn.Embedding(letters, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(BLOCKS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.odds = nn.Linear(WIDTH, letters, bias=False)
        for each in (self.letter, self.place):
            nn.init.normal_(each.weight, std=0.1)

    def forward(self, text):
        x = self.letter(text) + self.place(torch.arange(text.shape[1]))
        return self.odds(self.norm(self.blocks(x)))


def passages(text):
    """Return BATCH pieces of the text, and the same pieces shifted by one letter."""
    starts = torch.randint(len(text) - LENGTH - 1, (BATCH,))
    places = starts[:, None] + torch.arange(LENGTH)
    return text[places], text[places + 1]


@torch.no_grad()
def write(model, text, count, warmth=0.7):
    """Return the text with ``count`` more letters sampled from the model; ``warmth`` is the softmax temperature."""
    for _ in range(count):
        odds = model(text[:, -LENGTH:])[:, -1] / warmth
        text = torch.cat([text, torch.multinomial(torch.softmax(odds, 1), 1)], 1)
    return text[0].tolist()


def draw(losses, blind, file):
    """Plot the loss of every step, its mean over 20 steps, and the loss ``blind`` of equal probabilities."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("No picture without matplotlib: pip install matplotlib")
        return
    if STYLE.exists():
        pyplot.style.use(STYLE)
    window = min(20, len(losses))
    figure, axes = pyplot.subplots()
    axes.plot(losses, linewidth=0.6, color="C2", label="each step")
    axes.plot(
        range(window - 1, len(losses)), torch.tensor(losses).unfold(0, window, 1).mean(1), label="mean of 20 steps"
    )
    axes.axhline(blind, color="black", linestyle=":", linewidth=1, label="guessing blindly")
    axes.set(title="loss: cross entropy of the next letter", xlabel="step")
    axes.legend()
    figure.savefig(file)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=400)
    options.add_argument("--text", type=Path, nargs="+", default=sorted(PAGES.glob("*.md")), help="files to train on")
    options.add_argument("--resume", type=Path, help="checkpoint to resume from")
    options.add_argument("--folder", type=Path, default=Path(), help="output folder")
    chosen = options.parse_args()

    torch.manual_seed(0)
    pages = "".join(page.read_text(encoding="utf-8") for page in chosen.text)
    pages = "".join(each for each in pages if each.isascii())
    letters = sorted(set(pages))
    number = {letter: index for index, letter in enumerate(letters)}
    text = torch.tensor([number[letter] for letter in pages])
    model = Writer(len(letters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, chosen.steps)
    losses, begun = [], 0
    if chosen.resume:
        kept = torch.load(chosen.resume)
        for each, name in ((model, "model"), (optimizer, "optimizer"), (schedule, "schedule")):
            each.load_state_dict(kept[name])
        losses, begun = kept["losses"], len(kept["losses"])
    weights = sum(each.numel() for each in model.parameters())
    print(
        f"{len(text)} letters of {len(letters)} kinds, {weights} weights; guessing blindly: {math.log(len(letters)):.2f}"
    )
    start = time.perf_counter()
    try:
        for step in tqdm(range(begun, chosen.steps), initial=begun, total=chosen.steps, leave=False):
            read, follows = passages(text)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(read).flatten(0, 1), follows.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if (step + 1) % 50 == 0:
                tqdm.write(f"step {step + 1:4d}   loss {sum(losses[-50:]) / 50:.3f}")
    except KeyboardInterrupt:
        file = chosen.folder / "character_gpt.pt"
        kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
        torch.save({**kept, "losses": losses}, file)
        print(f"\nstopped after step {len(losses)}; go on with --resume {file}")
        return
    print(f"{time.perf_counter() - start:.1f} seconds; it writes:\n")
    print("".join(letters[each] for each in write(model, text[None, :LENGTH], 300)))
    draw(losses, math.log(len(letters)), chosen.folder / "character_gpt.png")


if __name__ == "__main__":
    main()
