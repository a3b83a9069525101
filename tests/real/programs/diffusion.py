"""Runs pipelines of diffusers with small configurations, to the last step: diffusion.py ROW. Prompts are given as their embeddings."""
import torch
from rows import main, peak_is, row

CUDA, STEPS = "cuda", 3


def embeddings(*shape):
    return torch.randn(shape, device=CUDA)


@row
def ltx_video():
    from diffusers import AutoencoderKLLTXVideo, FlowMatchEulerDiscreteScheduler, LTXPipeline, LTXVideoTransformer3DModel

    transformer = LTXVideoTransformer3DModel(in_channels=8, out_channels=8, patch_size=1, patch_size_t=1, num_attention_heads=4, attention_head_dim=8,
                                             cross_attention_dim=32, num_layers=1, caption_channels=32)
    vae = AutoencoderKLLTXVideo(in_channels=3, out_channels=3, latent_channels=8, block_out_channels=(8, 8, 8, 8), decoder_block_out_channels=(8, 8, 8, 8),
                                layers_per_block=(1, 1, 1, 1, 1), decoder_layers_per_block=(1, 1, 1, 1, 1), spatio_temporal_scaling=(True, True, False, False),
                                decoder_spatio_temporal_scaling=(True, True, False, False), decoder_inject_noise=(False, False, False, False, False),
                                upsample_residual=(False, False, False, False), upsample_factor=(1, 1, 1, 1), timestep_conditioning=False, patch_size=1,
                                patch_size_t=1, encoder_causal=True, decoder_causal=False)
    vae.use_framewise_encoding = vae.use_framewise_decoding = False
    pipe = LTXPipeline(scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, shift_terminal=0.1), vae=vae, text_encoder=None, tokenizer=None, transformer=transformer).to(CUDA)
    mask = torch.ones(1, 16, dtype=torch.long, device=CUDA)
    video = pipe(prompt_embeds=embeddings(1, 16, 32), prompt_attention_mask=mask, negative_prompt_embeds=embeddings(1, 16, 32), negative_prompt_attention_mask=mask,
                 height=32, width=32, num_frames=9, num_inference_steps=STEPS, output_type="np", guidance_scale=3.0).frames
    assert video.shape == (1, 9, 32, 32, 3), video.shape


@row
def flux():
    from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel

    transformer = FluxTransformer2DModel(patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
                                         joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=[4, 4, 8], guidance_embeds=True)
    vae = AutoencoderKL(sample_size=32, in_channels=3, out_channels=3, block_out_channels=(4,), layers_per_block=1, latent_channels=1, norm_num_groups=1,
                        use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.0609, scaling_factor=1.5035)
    pipe = FluxPipeline(scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True), vae=vae, text_encoder=None, tokenizer=None, text_encoder_2=None,
                        tokenizer_2=None, transformer=transformer).to(CUDA)
    image = pipe(prompt_embeds=embeddings(1, 12, 32), pooled_prompt_embeds=embeddings(1, 32), height=32, width=32, num_inference_steps=STEPS, output_type="np").images
    assert image.shape[0] == 1 and image.shape[3] == 3, image.shape


@row
def stable_diffusion_3():
    from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, SD3Transformer2DModel, StableDiffusion3Pipeline

    transformer = SD3Transformer2DModel(sample_size=32, patch_size=1, in_channels=4, num_layers=1, attention_head_dim=8, num_attention_heads=4,
                                        caption_projection_dim=32, joint_attention_dim=32, pooled_projection_dim=64, out_channels=4)
    vae = AutoencoderKL(sample_size=32, in_channels=3, out_channels=3, block_out_channels=(4,), layers_per_block=1, latent_channels=4, norm_num_groups=1,
                        use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.0609, scaling_factor=1.5035)
    pipe = StableDiffusion3Pipeline(transformer=transformer, scheduler=FlowMatchEulerDiscreteScheduler(), vae=vae, text_encoder=None, tokenizer=None,
                                    text_encoder_2=None, tokenizer_2=None, text_encoder_3=None, tokenizer_3=None).to(CUDA)
    image = pipe(prompt_embeds=embeddings(1, 10, 32), pooled_prompt_embeds=embeddings(1, 64), negative_prompt_embeds=embeddings(1, 10, 32),
                 negative_pooled_prompt_embeds=embeddings(1, 64), height=32, width=32, num_inference_steps=STEPS, output_type="np").images
    assert image.shape == (1, 32, 32, 3), image.shape


@row
def hunyuan_video():
    from diffusers import AutoencoderKLHunyuanVideo, FlowMatchEulerDiscreteScheduler, HunyuanVideoPipeline, HunyuanVideoTransformer3DModel

    transformer = HunyuanVideoTransformer3DModel(in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=10, num_layers=1, num_single_layers=1,
                                                 num_refiner_layers=1, patch_size=1, patch_size_t=1, guidance_embeds=True, text_embed_dim=16,
                                                 pooled_projection_dim=8, rope_axes_dim=(2, 4, 4))
    names = ("HunyuanVideoDownBlock3D",) * 4, ("HunyuanVideoUpBlock3D",) * 4
    vae = AutoencoderKLHunyuanVideo(in_channels=3, out_channels=3, latent_channels=4, down_block_types=names[0], up_block_types=names[1], block_out_channels=(8, 8, 8, 8),
                                    layers_per_block=1, act_fn="silu", norm_num_groups=4, scaling_factor=0.476986, spatial_compression_ratio=8,
                                    temporal_compression_ratio=4, mid_block_add_attention=True)
    pipe = HunyuanVideoPipeline(text_encoder=None, tokenizer=None, transformer=transformer, vae=vae, scheduler=FlowMatchEulerDiscreteScheduler(shift=7.0),
                                text_encoder_2=None, tokenizer_2=None).to(CUDA)
    mask = torch.ones(1, 16, device=CUDA)
    video = pipe(prompt_embeds=embeddings(1, 16, 16), pooled_prompt_embeds=embeddings(1, 8), prompt_attention_mask=mask, height=16, width=16, num_frames=9,
                 num_inference_steps=STEPS, output_type="np").frames
    assert video.shape == (1, 9, 16, 16, 3), video.shape


@row
def schedulers():
    """A loop of each scheduler, with a small network instead of the model."""
    import diffusers

    net = torch.nn.Conv2d(4, 4, 3, padding=1).to(CUDA)
    for name in ("DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler", "EulerAncestralDiscreteScheduler", "DPMSolverMultistepScheduler",
                 "UniPCMultistepScheduler", "HeunDiscreteScheduler", "KDPM2DiscreteScheduler", "LMSDiscreteScheduler", "DEISMultistepScheduler"):
        scheduler = getattr(diffusers, name)()
        scheduler.set_timesteps(8, device=CUDA)
        x, steps = torch.randn(1, 4, 16, 16, device=CUDA), 0
        with torch.no_grad():
            for t in scheduler.timesteps:
                x = scheduler.step(net(scheduler.scale_model_input(x, t)), t, x).prev_sample
                steps += 1
        assert steps == len(scheduler.timesteps) and x.shape == (1, 4, 16, 16)


if __name__ == "__main__":
    main()
