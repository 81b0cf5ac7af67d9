"""What each number of a method means, in a line: `soda-tta methods NAME` shows it beside the value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from soda_tta.methods.loop_method import LoopMethod

if TYPE_CHECKING:
    from soda_tta.methods import Method

# A number that means something else in one method is there as "method.number", with a search as "search.number", and
# in all that run on the training loop as "recipe.number".
MEANINGS = {
    "epochs": "times every image is learned from",
    "soda-o.epochs": "times each arriving batch is learned from, with the queue",
    "batch": "images a step",
    "soda-e.batch": "images a round of the search, at most",
    "lame.batch": "images whose neighbours are sought among each other",
    "tent.batch": "images whose statistics are taken together, and a step",
    "bn.batch": "images whose statistics are taken together",
    "average": "answer with the mean of the model's answers to the image and to the adapted image",
    # the network that changes the images
    "adaptor": "what changes the images: network (the paper's) or bank (restorations; it begins with the image)",
    "width": "channels of the network",
    "blocks": "residual blocks between its two convolutions",
    "pairs": "down- and up-sampling steps between them",
    "activation": "hardswish or relu",
    "dropout": "share of values dropped inside the blocks while it learns",
    "residual": "false: the network's output is the image itself, not a change of it",
    "start": "times the last layer's random weights; 0 begins with the images as they are",
    "da-direct.start": "times the last layer's random weights; 0 begins with grey images",
    "deviation": "of the data's pixels (of 1): how far the network may move a pixel, the size of a normalised one",
    "da-direct.deviation": "of the data's pixels (of 1): how far from grey a pixel may be",
    "da-pgd.deviation": "of the data's pixels (of 1): the size of a normalised one, in which lr and mu are",
    "grain": "of the bank: 1 for images of 32 pixels, about the root of (side / 32) for larger ones",
    # which pseudo-labels are trusted, and what is minimised
    "tau": "least confidence of a trusted pseudo-label",
    "rho": "share of each class left out, the least sure first: (1 - rho) n / C are kept",
    "aligned": "false repeats a slip of the released code: trusted labels beside other images",
    "alpha": "weight of the cross-entropy on trusted images beside the mutual information of the others",
    "beta.alpha": "of the beta distribution that MixMatch draws its shares from",
    "beta": "weight of the norm of what is added to the image",
    # how it is searched
    "search": "multi-point (the paper's), per-image or evolution",
    "directions": "random directions an estimate of the gradient: each costs a query an image and step",
    "mu": "how far along a direction is asked; too little drowns in the rounding of the answers",
    "sigma": "deviation of the directions; the estimate is sigma squared times the gradient",
    "soda-e.sigma": "first deviation of CMA-ES, in units of each part of the bank",
    "evolution.sigma": "first deviation, in units of each parameter",
    "central": "ask both ways along a direction: more exact, twice the price",
    "orthogonal": "directions at right angles to one another",
    "subspace": "random dimensions that all directions lie in; 0: all there are",
    "groups": "groups of a batch, each along a direction of its own for two queries an image",
    "population": "candidates a generation of CMA-ES",
    "diagonal": "learn no correlations: for hundreds of parameters and more",
    # the step
    "step": "sgd or adam",
    "lr": "learning rate",
    "recipe.lr": "learning rate; auto chooses one without labels, its queries are counted",
    "momentum": "of the step",
    "weight_decay": "share of the weights added to their gradient",
    "beta1": "of Adam: what its mean of gradients keeps a step",
    "beta2": "of Adam: what its mean of squares keeps a step",
    "epsilon": "of Adam: added to the root of that mean",
    # soda-e
    "judged": "images the verdict is passed on, at most",
    "level": "rate of wrong adoptions that is accepted",
    "tried": "moves a round of the search",
    "caution": "standard errors a move must gain to be taken",
    "without": "families of parts to leave alone, such as colour where colours mean something",
    # soda-o
    "arrival": "images that arrive at a time",
    "queue": "sure images kept from earlier batches",
    # dine and beta
    "finetune_epochs": "epochs on mutual information alone, after the distillation",
    "backbone_lr": "learning rate of the network given; by default 0.01 from random weights, else 0.001",
    "head_lr": "learning rate of the new layers that take the place of its last one",
    "ema": "what a remembered answer keeps of itself when it is renewed",
    "mix": "weight of the MixUp loss",
    "mixup_alpha": "of the beta distribution that MixUp draws its shares from",
    "topk": "largest probabilities kept as they are; the rest is spread evenly",
    "target": "the local network: resnet20-random, or one of the zoo to begin from",
    "size": "pixels a side at which the local network sees the images; 0: as they are",
    "module": "a torch module in its place, from Python only",
    "threshold": "trust from which a label counts as easy",
    "temperature": "of sharpening: less makes guessed labels surer",
    "lam_p": "weight of the even prior over the classes",
    "lam_u": "weight of the squared error on hard images",
    "rampup": "epochs until lam_u is whole",
    "adversarial": "weight of the adversarial term; 0.1 in its paper, off in its published settings",
    "warmup": "the first epochs, on the cross-entropy with the pseudo-labels alone",
    # office-home
    "agreement": "weight of the cross-entropy with the pseudo-labels",
    "information": "weight of the mutual information",
    "memory": "what a pseudo-label keeps of itself when it is renewed",
    "mixing": "both parameters of the beta distribution that shares are drawn from",
    # lame
    "neighbours": "of each image, found among the answers",
    "weight": "of the neighbours against the image's own answer",
    "steps": "of the correction, at most",
}


def meanings(method: Method) -> dict[str, str]:
    """A line for each number of a method; an empty one for those that a method of the user's own has of its own."""
    settings = method.settings
    shared = (
        settings
        if isinstance(method, LoopMethod) or type(method).__module__.startswith("soda_tta.")
        else INHERITED
    )
    owners = [
        method.name,
        str(settings.get("search")),
        *(["recipe"] if isinstance(method, LoopMethod) else []),
    ]
    found = dict.fromkeys(settings, "")
    for name in [name for name in settings if name in shared]:
        places = [*(f"{owner}.{name}" for owner in owners), name]
        found[name] = next((MEANINGS[place] for place in places if place in MEANINGS), "")
    return found


INHERITED = ("epochs", "batch")  # the fields of every procedure
