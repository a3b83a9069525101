"""The configuration of a very small Llama, with dummy weights made by the servers."""
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 4,
          "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 32000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
          "hidden_act": "silu", "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False, "rope_theta": 10000.0}
