"""Recurrent networks on packed sequences."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence, unpad_sequence

torch.manual_seed(6)


class Classifier(nn.Module):
    def __init__(self, vocab, dim, hidden, n):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.LSTM(dim, hidden, num_layers=2, bidirectional=True, batch_first=True, dropout=0.3)
        self.fc = nn.Linear(2 * hidden, n)

    def forward(self, x, lens):
        p = pack_padded_sequence(self.emb(x), lens.cpu(), batch_first=True, enforce_sorted=False)
        out, (h, c) = self.rnn(p)
        o, l = pad_packed_sequence(out, batch_first=True, total_length=x.size(1))
        return self.fc(torch.cat([h[-2], h[-1]], 1)), o, l


seqs = [torch.randint(1, 15, (n,)) for n in (5, 2, 7, 3)]
x = pad_sequence(seqs, batch_first=True)
lens = torch.tensor([len(s) for s in seqs])
y = torch.tensor([0, 1, 1, 0])
m = Classifier(15, 6, 5, 2)
o = torch.optim.Adagrad(m.parameters(), lr=0.1)
for i in range(5):
    m.train()
    l, outs, ll = m(x, lens)
    loss = nn.functional.cross_entropy(l, y)
    o.zero_grad()
    loss.backward()
    o.step()
    print(i, f"{loss.item():.6f}", ll.tolist())
print(m.emb.weight.grad[0], outs[1, 2:].abs().sum(), m.emb.weight[0])
p = pack_sequence(seqs, enforce_sorted=False)
print(p)
print(p.batch_sizes, unpad_sequence(x, lens, batch_first=True)[1])
g = nn.GRU(1, 3)
print(g(pack_sequence([torch.ones(3, 1), torch.ones(1, 1)]))[1])
cell = nn.LSTMCell(2, 3)
hx = cx = torch.zeros(1, 3)
for t in range(3):
    hx, cx = cell(torch.ones(1, 2) * t, (hx, cx))
print(hx, m.rnn)
print(
    torch.nn.functional.ctc_loss(
        torch.randn(6, 2, 5).log_softmax(2), torch.tensor([[1, 2], [3, 3]]), torch.tensor([6, 6]), torch.tensor([2, 2])
    )
)
