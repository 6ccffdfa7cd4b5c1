"""Small language models from configurations: a forward and a backward pass, and generated tokens."""

import torch
from report import show
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

torch.manual_seed(0)
tokens = torch.randint(3, 40, (2, 7))
sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
bert = BertForSequenceClassification(BertConfig(**sizes)).eval()
found = bert(tokens, labels=torch.tensor([0, 1]))
found.loss.backward()
show("bert", found.logits), show("gradient", bert.bert.embeddings.word_embeddings.weight.grad)
for model in (
    GPT2LMHeadModel(
        GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=32, bos_token_id=1, eos_token_id=2)
    ),
    LlamaForCausalLM(LlamaConfig(**sizes, num_key_value_heads=1, bos_token_id=1, eos_token_id=2)),
):
    show("loss", model.eval()(tokens, labels=tokens).loss)
    print(model.generate(tokens, max_new_tokens=5, do_sample=False, pad_token_id=0).tolist())
