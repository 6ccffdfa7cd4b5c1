"""Table of the names of PyTorch that are left out on purpose, by reason.

This table is used by the errors for missing names (``compat/missing_names.py``), by the documentation page about
differences from PyTorch and by the coverage count (``scripts/coverage.py``). The module imports no other module of
retrograd.
"""

from __future__ import annotations

import functools
import re

# For each reason, patterns that match whole names below ``torch.``; everything below a matching name is left out as
# well. Methods of Tensor are written out, because the class gets a descriptor for each.
LEFT_OUT = {
    "block-sparse and semi-structured tensors": r"""
        sparse_bs[rc](_tensor)? sparse\.(SparseSemi\w+|to_sparse_semi\w+|as_sparse_gradcheck|solve|spsolve)
        (?!is_)\w+_sparse(_\w*)? sparse_resize\w* (ccol|col|crow|row|)_?indices_copy values_copy
        Tensor.resize_as_sparse_ Tensor.sparse_resize_ Tensor.sparse_resize_and_clear_ Tensor.to_sparse_bsc
        Tensor.to_sparse_bsr""",
    "quantized tensors": r"""
        (.*\.)?(?!is_)\w*quantiz[ei]\w* choose_qparams_\w+ fbgemm_\w+ fused_moving_avg_obs_fake_quant int_repr ao
        (.*\.)?q_\w+ QU?Int\w+ qscheme per_(channel|tensor)_\w+
        Tensor.dequantize Tensor.int_repr Tensor.q_per_channel_axis Tensor.q_per_channel_scales
        Tensor.q_per_channel_zero_points Tensor.q_scale Tensor.q_zero_point Tensor.qscheme""",
    "named tensors": r"""
        align_tensors Tensor.align_as Tensor.align_to Tensor.name Tensor.names Tensor.refine_names Tensor.rename
        Tensor.rename_""",
    # NumPy has no such dtypes, and float8 can only be multiplied by the hardware for which these functions exist.
    "numbers of other sizes than NumPy's": r"""
        float4_\w+ bit bits\d\w*
        (nn\.functional\.)?(scaled_(grouped_)?|grouped_)mm nn\.functional\.(Scaling|Swizzle)Type""",
    # Programs are plain Python: there is no second representation of a program, and so no script types, no symbolic
    # sizes and no operators for control flow.
    "compiling and exporting programs": r"""
        export fx\.(traceback|operator_schemas|tensor_type|annotate|config) fx\.passes\.(?!shape_prop|utils)\w+
        fx\.experimental\.(?!proxy_tensor$)[\w.]+
        onnx\.(?!is_in_onnx_export|\w*register_custom_op_symbolic|operators|symbolic_)\w+
        package utils\.cpp_extension
        jit\.(\w*flatbuffer|fuser|Recursive\w+|\w*Trac(ed|er|ing)(?!Warning)\w+|ScriptWarning|last_executed\w+)
        jit\.(run_frozen\w+|set_module)
        jit\.(CompilationUnit|export_opnames|mobile|quantized|_(?!overload)\w+)
        compiler\.(keep_\w+|skip_\w+|load_\w+|save_\w+|set_enable_\w+|substitute_in_graph) library\.\w+ jiterator cond while_loop
        Sym(Bool|Int)Type sym_(constrain|fresh|sqrt)\w* Script(?!(Function|Module)\b)\w+
        \w+Type\w* Type Argument(Spec)? CompleteArgumentSpec
        LiteScriptModule CompilationUnit
        (testing\.)?FileCheck AliasDb Block BufferDict CallStack Code ConcreteModule\w+ DeepCopyMemoTable
        DeserializationStorageContext SerializationStorageContext ErrorReport ExecutionPlan FunctionSchema
        Gradient Graph(ExecutorState)? IODescriptor JITException ModuleDict Node OperatorInfo ParameterDict
        StaticModule TracingState Use Value fork wait import_ir_module\w* merge_type_from_type_comment parse_\w+
        unify_type_list""",
    "distribution over machines and processes": r"""
        distributed\.rpc\.(?!is_available)\w+
        distributed\.(pipelining|nn|utils|autograd|config|remote_device)
        distributed\.elastic\.(multiprocessing\.)?(?!multiprocessing\b|errors\b)\w+
        distributed\.(Logger|ProcessGroupGloo|\w+Options|BackendConfig)
        distributed\.(split|shrink)_group distributed\.algorithms\.(?!join|ddp_comm_hooks)\w+
        distributed\.(checkpoint|fsdp|optim|tensor)\.\w+
        nn\.parallel\.(replicate|comm|DistributedDataParallelCPU)
        is_distributed Tensor.is_distributed prepare_multiprocessing_environment""",
    "devices other than the CPU and NVIDIA's GPUs": r"""
        mps xpu mtia xla hip vulkan is_vulkan_available \w+_autocast_(ipu|xla)_\w+
        Tensor.ipu Tensor.mtia Tensor.xpu""",
    # The same computations have general names: ``conv2d``, ``batch_norm``, ``max_pool2d`` …
    "names of one library's routines": r"""
        (cudnn|miopen|mkldnn)_\w+ Tensor.to_mkldnn
        batch_norm_(backward_elemt|backward_reduce|elemt|gather_stats(_with_counts)?|stats)""",
    "insides of PyTorch's C++": r"""
        utils\.benchmark\.(Callgrind\w+|CopyIfCallgrind|FunctionCounts?|Fuzz\w+|Number|ParameterAlias)
        Benchmark\w+ ThroughputBenchmark Capsule DisableTorchFunction\w* DispatchKey(Set)?
        ExcludeDispatchKeyGuard FatalError LockingLogger LoggerBase NoopLogger PyTorchFileWriter Tag StorageBase
        classproperty compiled_with_cxx11_abi get_file_path init_num_threads profiler_allow_\w+
        Tensor.index native_norm autocast_(in|de)crement_nesting (random\.)?thread_safe_generator autograd\.NestedIOFunction
        autograd\.profiler\.(EnforceUnique|KinetoStepTracker|Profiler(Config|State)) autograd\.Profiler(Config|State|Event)
        profiler\.(ExecutionTraceObserver|KinetoStepTracker|RecordScope|is_fbcode)
        autograd\.enforce_grad_layout_policy autograd\.graph\.(region_activation_memory_budget|set_\w+stream\w*)""",
    "storages by type": r"(cuda\.)?\w*(?<!Untyped)Storage Tensor.storage_type",
    "tending the GPU's driver": r"""
        cuda\.(cudart|cudaStatus|CudaError|DeferredCudaCallError|check_error|current_(blas|solver)_handle)
        cuda\.(get_(gencode_flags|allocator_backend|stream_from_external)|ExternalStream|GreenContext)
        cuda\.(graph_pool_handle|graphs|make_graphed_callables)
        cuda\.(CUDAPluggableAllocator|MemPool|use_mem_pool|caching_allocator_\w+|change_current_allocator)
        cuda\.\w*host_memory_\w+
        cuda\.(clock_rate|device_memory_used|list_gpu_processes|memory_usage|power_draw|temperature|utilization)
        backends\.cuda\.(cufft\w*|cuFFT\w*|cuBLASModule|SDPAParams|can_use_\w+|preferred_\w+|\w*blas\w*_workspace_size)
        backends\.(cuda\.is_ck_sdpa_available|python_native|xeon|xnnpack|mps\.get_\w+|disable_global_flags|flags_frozen)
        accelerator\.Graph
        (autograd\.)?profiler\.(emit_itt|itt|load_nvprof|parse_nvprof_trace) autograd\.profiler_util\.EventMetadata
        nn\.attention\.\w*(flash|WARN)\w*
        cuda\.(gds|green_contexts|jiterator|nccl|tunable)""",
    "what PyTorch itself has removed": r"""
        eig lstsq matrix_rank solve symeig Tensor.eig Tensor.lstsq Tensor.reinforce Tensor.solve Tensor.symeig
        Tensor.volatile""",
    "private names": r"(.*\.)?_[^_.]\w*",
}

#: Methods of Tensor that ``retrograd.sparse`` sets when it is imported, each of which gets a ``MethodOnDemand``.
SPARSE_METHODS = (
    "_coalesced_", "_indices", "_nnz", "_values", "ccol_indices", "coalesce", "col_indices", "crow_indices", "dense_dim",
    "indices", "is_coalesced", "row_indices", "smm", "sparse_dim", "sparse_mask", "sspaddmm", "to_dense", "to_sparse",
    "to_sparse_coo", "to_sparse_csc", "to_sparse_csr", "values",
)  # fmt: skip

#: Methods of Tensor that ``retrograd.nested`` sets when it is imported.
NESTED_METHODS = ("to_padded_tensor",)

#: Methods and properties of Tensor in the table, each of which gets an ``UnsupportedAttribute``.
TENSOR_ATTRIBUTES = tuple(
    name.removeprefix("Tensor.")
    for names in LEFT_OUT.values()
    for name in names.split()
    if name.startswith("Tensor.") and name.removeprefix("Tensor.").isidentifier()
)


@functools.cache
def patterns() -> dict[str, re.Pattern[str]]:
    """Return a dict from each reason to a compiled regular expression, which matches the names left out for it."""
    return {why: re.compile(rf"(?:{'|'.join(names.split())})(?:\..*)?") for why, names in LEFT_OUT.items()}


def reason(name: str) -> str | None:
    """Return the reason why ``torch.<name>`` is left out on purpose, or None if it is not left out on purpose.

    >>> reason("onnx.export")
    'compiling and exporting programs'
    """
    return next((why for why, names in patterns().items() if names.fullmatch(name)), None)
