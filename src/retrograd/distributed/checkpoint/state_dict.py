"""State dictionaries of models and optimisers whose keys are the names of the parameters in the plain model.

The keys have no prefix ``module.`` of DistributedDataParallel, and the state of an optimiser has the names of the
parameters instead of numbers, so that it does not depend on the number of ranks and on the wrapping of the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...nn.modules.module import Module
from ...nn.modules.state import IncompatibleKeys
from ...operations.creation.factory import empty
from ...operations.creation.from_data import tensor
from ...optim import Optimizer
from ...runtime.user_frame import warn
from .. import groups
from ..collectives import broadcast
from ..data_parallel import DistributedDataParallel
from ..object_collectives import all_gather_object, broadcast_object_list
from ..optim import ZeroRedundancyOptimizer
from ..tensor import DTensor, distribute_tensor
from ._nested_dict import flatten_state_dict, unflatten_state_dict

State = dict[str, Any]


@dataclass
class StateDictOptions:
    """Options of the functions of this module.

    ``full_state_dict``: DTensors are collected, and the dictionaries contain whole tensors. With ``cpu_offload`` they
    are on the CPU, and with both only rank 0 gets them. ``ignore_frozen_params`` leaves out parameters that require no
    gradient. ``strict`` is passed to ``load_state_dict``. With ``broadcast_from_rank0``, only rank 0 has a (full)
    dictionary to be loaded. ``flatten_optimizer_state_dict`` gives ``{"state.w.step": …, "param_groups.w.lr": …}``.
    ``keep_submodule_prefixes`` concerns the deprecated argument ``submodules``; ``dsd_fqn_modifiers`` has no effect.

    >>> from retrograd.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    >>> model = torch.nn.Linear(2, 1)
    >>> _ = model.bias.requires_grad_(False)
    >>> list(get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True)))
    ['weight']
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _plain_name(model: Module, name: str) -> str:
    """Return the name of a parameter or module of ``model`` without the prefixes of DistributedDataParallel."""
    parts = []
    module: Any = model
    for part in name.split("."):
        if not (isinstance(module, DistributedDataParallel) and part == "module"):
            parts.append(part)
        module = getattr(module, "_modules", {}).get(part)
    return ".".join(parts)


def _prefixes(model: Module, submodules: set[Module] | None) -> set[str]:
    if not submodules:
        return set()
    warn(
        "Getting submodules only model/optim state_dict is deprecated and will be removed in 2.5. This feature can be "
        "achieved by manually filtering out the state_dict returned from get_state_dict.",
        FutureWarning,
    )
    return {_plain_name(model, name) + "." for name, each in model.named_modules() if each in submodules}


def _delivered(state: Any, options: StateDictOptions) -> Any:
    """Return ``state`` with whole tensors, or tensors on the CPU, as ``options`` say."""
    if not options.full_state_dict and not options.cpu_offload:
        return state

    def convert(value: Any) -> Any:
        if isinstance(value, Tensor):
            value = value.detach()
            if options.full_state_dict and isinstance(value, DTensor):
                value = value.full_tensor()
            return value.cpu() if options.cpu_offload else value
        if isinstance(value, dict):
            return {key: convert(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(map(convert, value)) if type(value) in (list, tuple) else value
        return value

    converted = convert(state)
    alone = options.full_state_dict and options.cpu_offload and groups.is_initialized()
    return {} if alone and groups.get_rank() != 0 else converted


# -- Getting -----------------------------------------------------------------------------------------------------------


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> State:
    """Return the state dictionary of ``model`` with plain names; its tensors share memory with those of the model.

    >>> import retrograd as torch
    >>> from retrograd.distributed.checkpoint.state_dict import get_model_state_dict
    >>> list(get_model_state_dict(torch.nn.Linear(2, 1)))
    ['weight', 'bias']
    """
    options = _checked(options)
    prefixes = _prefixes(model, submodules)
    with no_grad():
        state = {_plain_name(model, key): value for key, value in model.state_dict().items()}
        if prefixes:
            kept = {}
            for key, value in state.items():
                for prefix in prefixes:
                    if key.startswith(prefix):
                        kept[key if options.keep_submodule_prefixes else key[len(prefix) :]] = value
            state = kept
        if options.ignore_frozen_params:
            for key, param in model.named_parameters():
                if not param.requires_grad:
                    state.pop(_plain_name(model, key), None)
        found: State = _delivered(state, options)
        return found


def get_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> State:  # fmt: skip
    """Return the state of ``optimizers``, whose parameters are those of ``model``, by the names of the parameters.

    The state of an optimiser without steps is created first, by a step with a learning rate and gradients of 0.

    >>> from retrograd.distributed.checkpoint.state_dict import get_optimizer_state_dict
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> state = get_optimizer_state_dict(model, optimizer)
    >>> {name: list(each) for name, each in state["state"].items()}
    {'weight': ['momentum_buffer'], 'bias': ['momentum_buffer']}
    >>> state["param_groups"][0]["params"]
    ['weight', 'bias']
    """
    options = _checked(options)
    prefixes = _prefixes(model, submodules)
    names = _names_of_parameters(model)
    state: State = {}
    listed: list[State] = []
    with no_grad():
        for optimizer in _as_tuple(optimizers):
            packed = _packed(optimizer, options.full_state_dict)
            order = [names[id(param)] for group in optimizer.param_groups for param in group["params"]]
            state.update({order[key] if isinstance(key, int) else key: each for key, each in packed["state"].items()})
            listed += [
                {**group, "params": [order[each] for each in group["params"]]} for group in packed["param_groups"]
            ]
        if prefixes:
            state = {key: each for key, each in state.items() if key.startswith(tuple(prefixes))}
            for group in listed:
                group["params"] = [each for each in group["params"] if each.startswith(tuple(prefixes))]
        whole: State = {"state": state, "param_groups": listed}
        found: State = _delivered(_flat(whole) if options.flatten_optimizer_state_dict else whole, options)
        return found


def get_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[State, State]:  # fmt: skip
    """Return the results of :func:`get_model_state_dict` and :func:`get_optimizer_state_dict`.

    >>> from retrograd.distributed.checkpoint.state_dict import get_state_dict
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> model_state, optimizer_state = get_state_dict(model, optimizer)
    >>> list(model_state), list(optimizer_state)
    (['weight', 'bias'], ['state', 'param_groups'])
    """
    optimizers = _as_tuple(optimizers)
    states = get_model_state_dict(model, submodules=submodules, options=options)
    empty_state: State = {}
    if not optimizers:
        return states, empty_state
    return states, get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options)


def _packed(optimizer: Optimizer, full: bool) -> State:
    """Return the state dictionary of ``optimizer``.

    Of a ZeroRedundancyOptimizer, it has the state of the parameters of this rank, or, if ``full`` is true, of all ranks.
    """
    if not isinstance(optimizer, ZeroRedundancyOptimizer):
        _initialize(optimizer)
        return optimizer.state_dict()
    _initialize(optimizer.optim)
    packed = optimizer.local_state_dict()
    if full and optimizer.world_size > 1:
        parts: list[Any] = [None] * optimizer.world_size
        all_gather_object(parts, packed["state"], group=optimizer.process_group)
        packed["state"] = {key: value for part in parts for key, value in part.items()}
    return packed


def _as_tuple(optimizers: Optimizer | Iterable[Optimizer]) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _names_of_parameters(model: Module) -> dict[int, str]:
    """Return the first plain name of each parameter by its identity."""
    names: dict[int, str] = {}
    for key, param in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(param), _plain_name(model, key))
    return names


def _initialize(optimizer: Optimizer) -> None:
    """Create the state of ``optimizer`` if it has none and no gradient exists; the parameters do not change."""
    params = [param for group in optimizer.param_groups for param in group["params"]]
    if optimizer.state or any(param.grad is not None for param in params):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    before = [param.detach().clone() for param in params]
    try:
        for param in params:
            if param.requires_grad:
                param.grad = param.detach().clone().zero_()
        for group in optimizer.param_groups:
            if "lr" in group:
                group["lr"] = tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
        optimizer.step()
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if rate is not None:
                group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        for param, old in zip(params, before, strict=True):
            param.detach().copy_(old)
    for state in optimizer.state.values():  # that was not a step
        if isinstance(state.get("step"), Tensor):
            state["step"].zero_()


def _flat(state: State) -> State:
    flat: State = {}

    def visit(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, each in value.items():
                visit(f"{prefix}.{key}", each)
        elif isinstance(value, (Tensor, int, float)):
            flat[prefix] = value
        else:
            raise NotImplementedError(
                "Flattening optimizer state_dict only supports tensor, int, float, dict states now. "
                f"Type is {type(value)}."
            )

    for name, each in state["state"].items():
        visit(f"state.{name}", each)
    for group in state["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"})
    return flat


# -- Setting -----------------------------------------------------------------------------------------------------------


def set_model_state_dict(
    model: Module, model_state_dict: State, *, options: StateDictOptions | None = None
) -> IncompatibleKeys:
    """Load ``model_state_dict``, with plain names, into ``model``.

    Return the missing and the unexpected keys. With ``full_state_dict``, whole tensors are distributed as the
    parameters are.

    >>> from retrograd.distributed.checkpoint.state_dict import set_model_state_dict
    >>> model = torch.nn.Linear(2, 1)
    >>> set_model_state_dict(model, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)})
    <All keys matched successfully>
    >>> model.weight.tolist()
    [[1.0, 1.0]]
    """
    options = _checked(options)
    state = dict(model_state_dict)
    if state and isinstance(next(iter(state)), Module):
        warn(
            "Passing model_state_dict as a ``Dict[nn.Module, Dict[str, Any]]``is deprecated and will be removed in 2.5. If "
            "you need this feature, please preprocess the model_state_dict to achieve the same functionality.",
            FutureWarning,
        )
        found = {id(each): _plain_name(model, name) for name, each in model.named_modules()}
        state = {f"{found[id(module)]}.{key}": value for module, inner in state.items() for key, value in inner.items()}
    if not state and not options.broadcast_from_rank0:
        return IncompatibleKeys([], [])
    with no_grad():
        own = model.state_dict()
        if options.full_state_dict:
            targets = {_plain_name(model, key): value for key, value in own.items()}
            state = _distributed(state, targets, options.broadcast_from_rank0)
        prefixed = {_plain_name(model, key): key for key in own}
        if options.strict:
            for plain, key in prefixed.items():
                if plain != key and plain not in state:
                    raise RuntimeError(f"Missing key: {plain}.")
        renamed = {prefixed.get(key, key): value for key, value in state.items()}
        result: IncompatibleKeys = model.load_state_dict(renamed, strict=options.strict)
        return result


def _distributed(state: State, targets: State, from_rank0: bool) -> State:
    """Return ``state``, a flat dictionary of whole tensors, distributed as ``targets`` are.

    If ``from_rank0`` is true, the values are those of rank 0. A tensor without a target is not distributed.
    """
    if from_rank0:
        described = {
            key: (tuple(each.shape), each.dtype) if isinstance(each, Tensor) else (None, each)
            for key, each in state.items()
        }
        known = [described]
        broadcast_object_list(known, src=0)
        received: State = {}
        for key, (shape, kind) in known[0].items():
            if shape is None:
                received[key] = kind
                continue
            target = targets.get(key)
            place = target.device if isinstance(target, Tensor) and not target.is_meta else "cpu"
            whole = state[key].detach().clone() if groups.get_rank() == 0 else empty(shape, dtype=kind)
            whole = whole.to(place).contiguous()
            broadcast(whole, src=0)
            received[key] = _as_target(whole, target)
        return received
    return {key: _as_target(value, targets.get(key)) for key, value in state.items()}


def _as_target(value: Any, target: Any) -> Any:
    if isinstance(target, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor):
        return distribute_tensor(value.detach(), target.device_mesh, target.placements, src_data_rank=None)
    return value


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], optim_state_dict: State, *,
    options: StateDictOptions | None = None,
) -> None:  # fmt: skip
    """Load ``optim_state_dict``, a result of :func:`get_optimizer_state_dict`, into ``optimizers``.

    >>> from retrograd.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> state = get_optimizer_state_dict(model, optimizer)
    >>> other = torch.optim.SGD(model.parameters(), lr=0.5)
    >>> set_optimizer_state_dict(model, other, state)
    >>> other.param_groups[0]["lr"]
    0.1
    """
    options = _checked(options)
    names = _names_of_parameters(model)
    with no_grad():
        for optimizer in _as_tuple(optimizers):
            _initialize(optimizer.optim if isinstance(optimizer, ZeroRedundancyOptimizer) else optimizer)
            if not optim_state_dict and not options.broadcast_from_rank0:
                continue
            state = optim_state_dict
            if options.full_state_dict:
                own = get_optimizer_state_dict(
                    model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict="state" not in state)
                )
                state = _distributed_nested(state, own, options.broadcast_from_rank0)
            optimizer.load_state_dict(_numbered(optimizer, state, names, options.strict))


def _distributed_nested(state: State, own: State, from_rank0: bool) -> State:
    if from_rank0:  # rank 0 knows whether the dictionary is flat
        flat = ["state" not in state]
        broadcast_object_list(flat, src=0)
        if flat[0]:
            own = _flat(own) if "state" in own else own
            return _distributed(state, own, True)
    values, paths = flatten_state_dict(state)
    if from_rank0:
        known = [paths]
        broadcast_object_list(known, src=0)
        paths = known[0]
    targets, _ = flatten_state_dict(own)
    return unflatten_state_dict(_distributed(values, targets, from_rank0), paths)


def _numbered(optimizer: Optimizer, state: State, names: dict[int, str], strict: bool) -> State:
    """Return the part of ``state`` for ``optimizer``, with the numbers of the parameters."""
    nested = "state" in state and "param_groups" in state
    if nested and state["state"] and all(isinstance(key, int) for key in state["state"]):
        return state
    values: dict[int, Any] = {}
    listed: list[State] = []
    number = 0
    for group in optimizer.param_groups:
        packed: State = {key: value for key, value in group.items() if key != "params"}
        packed["params"] = list(range(number, number + len(group["params"])))
        for param in group["params"]:
            name = names[id(param)]
            found = _of_parameter(state, name, group, optimizer.state.get(param, {}), nested)
            packed.update({key: value for key, value in found[1].items() if key != "params"})
            if found[0] is not None:
                values[number] = found[0]
            elif param.requires_grad and strict and optimizer.state.get(param):
                raise RuntimeError(
                    f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter requires gradients but has "
                    "no saved optimizer state. To load anyway, use StateDictOptions(strict=False)."
                )
            number += 1
        listed.append(packed)
    return {"state": values, "param_groups": listed}


def _of_parameter(state: State, name: str, group: State, own: State, nested: bool) -> tuple[Any, State]:
    """Return the state of the parameter ``name``, or None, and the options of its group."""
    if nested:
        owner: State = next((each for each in state["param_groups"] if name in each["params"]), {})
        return state["state"].get(name), owner
    options = {key: state[f"param_groups.{name}.{key}"] for key in group if f"param_groups.{name}.{key}" in state}
    prefix = f"state.{name}."
    found: State = {}
    for key, value in state.items():
        if key.startswith(prefix):
            inner, parts = found, key.removeprefix(prefix).split(".")
            if parts[0] not in own and own:
                continue
            for part in parts[:-1]:
                inner = inner.setdefault(part, {})
            inner[parts[-1]] = value
    return found or None, options


def set_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, model_state_dict: State, optim_state_dict: State,
    options: StateDictOptions | None = None,
) -> IncompatibleKeys:  # fmt: skip
    """Load the results of :func:`get_state_dict` into ``model`` and ``optimizers``.

    >>> from retrograd.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> model_state, optimizer_state = get_state_dict(model, optimizer)
    >>> set_state_dict(model, optimizer, model_state_dict=model_state, optim_state_dict=optimizer_state)
    <All keys matched successfully>
    """
    optimizers = _as_tuple(optimizers)
    if optimizers:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip
