"""The reference learners by slug. A slug is also the tag of its image and the name of its submission manifest."""

from __future__ import annotations

SCRATCH: dict[str, str] = {
    "afc": "reference.methods.afc:AFC",
    "beef": "reference.methods.beef:BEEF",
    "bic": "reference.methods.bic:BiC",
    "der": "reference.methods.der:DER",
    "foster": "reference.methods.foster:FOSTER",
    "ft": "reference.methods.ft:FineTuning",
    "ft_exemplars": "reference.methods.ft_exemplars:FineTuningExemplars",
    "icarl": "reference.methods.icarl:ICaRL",
    "joint": "reference.methods.joint:Joint",
    "lucir": "reference.methods.lucir:LUCIR",
    "lwf": "reference.methods.lwf:LwF",
    "mas": "reference.methods.mas:MAS",
    "mas_exemplars": "reference.methods.mas_exemplars:MASExemplars",
    "memo": "reference.methods.memo:MEMO",
    "podnet": "reference.methods.podnet:PODNet",
    "replay": "reference.methods.replay:Replay",
    "ssil": "reference.methods.ssil:SSIL",
    "wa": "reference.methods.wa:WA",
}
"""Methods trained from scratch: ResNet-32 or ResNet-18."""

PRETRAINED: dict[str, str] = {
    "adam_adapter": "reference.pretrained.adam_adapter:AdamAdapter",
    "afec": "reference.pretrained.afec:AFEC",
    "cls_er": "reference.pretrained.cls_er:CLSER",
    "coda_prompt": "reference.pretrained.coda_prompt:CodaPrompt",
    "dualprompt": "reference.pretrained.dualprompt:DualPrompt",
    "ease": "reference.pretrained.ease:Ease",
    "er_pretrained": "reference.pretrained.er_pretrained:ERPretrained",
    "hide_prompt": "reference.pretrained.hide_prompt:HiDePrompt",
    "l2p": "reference.pretrained.l2p:L2P",
    "lae": "reference.pretrained.lae:LAE",
    "pgp": "reference.pretrained.pgp:PGP",
    "ranpac": "reference.pretrained.ranpac:RanPAC",
    "simplecil": "reference.pretrained.simplecil:SimpleCIL",
    "slca": "reference.pretrained.slca:SLCA",
}
"""Methods on a pretrained vision transformer."""

METHODS: dict[str, str] = {**SCRATCH, **PRETRAINED}
"""slug -> module:Class; a string, so that reading the catalogue imports no PyTorch."""
