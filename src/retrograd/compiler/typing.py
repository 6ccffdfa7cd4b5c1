"""Type aliases for the annotations of the compiler, in addition to those of ``core/typing.py``.

No module loads this module at run time; Note [Any in annotations] in ``core/typing.py`` has the rule for ``Any``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from .fusion import Loop
    from .ir import Step
    from .regions import Region

#: Operation of a step: an ``Op`` of ``dispatch``, or an ``ExtraOp``, which has the attributes of an ``Op`` that the step
#: needs. The name of the operation decides which of the two it is.
Operation: TypeAlias = Any
#: Operand of a step: a ``Value``, a number or None. Which of these it is follows from the operation, or is tested by
#: ``__class__ is Value``, by which type checkers cannot exclude a class.
Operand: TypeAlias = Any
#: Array or ``Value`` whose shape, dtype and strides a new ``Value`` describes.
Described: TypeAlias = Any
#: Step of a program after fusion.
AnyStep: TypeAlias = "Step | Loop | Region"
#: The class of the steps of one list.
StepKind = TypeVar("StepKind", bound="Step | Loop | Region")
#: Operands of a call: traced and ordinary tensors, numbers and None, whose classes are tested where they matter.
Operands: TypeAlias = tuple[Any, ...]
#: Tensors that a function combines, such as the arguments of ``cat``.
Members: TypeAlias = Sequence[Any]
#: Parameters of an operation by position. Their types are those of the operation's declaration.
Params: TypeAlias = tuple[Any, ...]
#: Results of an operation: a traced tensor or a tuple of traced tensors; after the recording has stopped, ordinary
#: tensors.
Results: TypeAlias = Any
#: Argument of a gradient rule: the namespace ``F``, the gradient, an operand, a result, or one of their properties.
RuleArgument: TypeAlias = Any
#: Argument of a deferred call that is not a tensor: an immutable object, or a sequence of them; tested by its class.
Constant: TypeAlias = Any
#: What an entry requires of an input: shape, dtype, strides, requires_grad, and whether it is an inference tensor.
Description: TypeAlias = tuple[object, ...]
