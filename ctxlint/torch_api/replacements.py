"""Modules outside of torch that replace parts of it when they are imported."""

from __future__ import annotations

REPLACED_BY = {
    "habana_frameworks.torch.gpu_migration": "torch.cuda",
    "mindspeed.megatron_adaptor": "torch.cuda",
    "torch_br.contrib.transfer_to_supa": "torch.cuda",
    "torch_dipu": "torch.cuda",
    "torch_gcu.transfer_to_gcu": "torch.cuda",
    "torch_mlu.utils.gpu_migration": "torch.cuda",
    "torch_mlu.utils.model_transfer": "torch.cuda",
    "torch_npu.contrib.transfer_to_npu": "torch.cuda",
    "torch_sdaa.utils.cuda_migrate": "torch.cuda",
    "torch_supa.contrib.transfer_to_supa": "torch.cuda",
    "torchada": "torch.cuda",
}
"""The module of torch in whose place each of these puts its own: then it is unknown what a name in it means.

``intel_extension_for_pytorch``, ``torch_npu`` and ``torch_musa`` alone only add modules next to it.
"""


def owners_of(name: str) -> list[str]:
    """A dotted name of torch, after the modules that it is in: code that sets one of them replaces it."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(2, len(parts) + 1)]
