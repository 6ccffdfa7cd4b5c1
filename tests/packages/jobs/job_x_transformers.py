"""A decoder with rotary positions: loss, gradient and generated tokens."""

import torch
from report import show
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, rotary_pos_emb=True)
model = AutoregressiveWrapper(TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=layers))
tokens = torch.randint(0, 20, (2, 10))
loss = model(tokens)
loss.backward()
show("loss", loss), show("gradient", model.net.token_emb.emb.weight.grad)
print(model.generate(tokens[:, :3], 5, temperature=0.0).tolist())
