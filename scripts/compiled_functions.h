/* Operations of the compiled functions on Python objects and arrays; see scripts/build_compiled.py. */
#include <Python.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>
#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#undef _PyGC_FINALIZED
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

/* A slot is at the same offset in all instances of a class. Each attribute name has a table of offsets by class. An entry
   holds while the class is not modified: CPython then gives it another version, as for its own caches. */
#define ENTRIES 64
typedef struct {
    PyTypeObject *type;
    unsigned int version;
    Py_ssize_t offset; /* 0: not a slot */
} slot_entry;

static Py_ssize_t find_slot(slot_entry *entry, PyTypeObject *type, PyObject *name) {
    PyObject *found = _PyType_Lookup(type, name);
    entry->type = NULL;
    if (found == NULL || Py_TYPE(found) != &PyMemberDescr_Type) return 0;
    if (type->tp_getattro != PyObject_GenericGetAttr || type->tp_setattro != PyObject_GenericSetAttr) return 0;
    PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
    if (member->type != T_OBJECT_EX || member->flags || !PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)
        || !PyType_IsSubtype(type, PyDescr_TYPE(found))) return 0;
    entry->type = type;
    entry->version = type->tp_version_tag;
    entry->offset = member->offset;
    return member->offset;
}

static CYTHON_INLINE PyObject **slot_of(PyObject *object, slot_entry *table, PyObject *name) {
    PyTypeObject *type = Py_TYPE(object);
    slot_entry *entry = &table[((size_t)type >> 5) % ENTRIES];
    int known = entry->type == type && entry->version == type->tp_version_tag;
    Py_ssize_t offset = known ? entry->offset : find_slot(entry, type, name);
    return offset ? (PyObject **)((char *)object + offset) : NULL;
}

static CYTHON_INLINE PyObject *get_attribute(PyObject *object, slot_entry *table, PyObject *name) {
    PyObject **slot = slot_of(object, table, name);
    return slot != NULL && *slot != NULL ? Py_NewRef(*slot) : PyObject_GetAttr(object, name);
}

static CYTHON_INLINE int set_attribute(PyObject *object, slot_entry *table, PyObject *name, PyObject *value) {
    PyObject **slot = slot_of(object, table, name);
    if (slot == NULL) return PyObject_SetAttr(object, name, value);
    PyObject *before = *slot;
    *slot = Py_NewRef(value);
    Py_XDECREF(before);
    return 0;
}

static CYTHON_INLINE PyObject *get_dtype(PyObject *object, slot_entry *table, PyObject *name) {
    if (Py_TYPE(object) == &PyArray_Type) return Py_NewRef((PyObject *)PyArray_DESCR((PyArrayObject *)object));
    return get_attribute(object, table, name);
}

static CYTHON_INLINE Py_ssize_t get_size(PyObject *object) {
    if (Py_TYPE(object) == &PyArray_Type) return PyArray_SIZE((PyArrayObject *)object);
    PyObject *size = PyObject_GetAttrString(object, "size");
    if (size == NULL) return -1;
    Py_ssize_t value = PyLong_AsSsize_t(size);
    Py_DECREF(size);
    return value;
}

/* object.__class__, which is the type of all objects whose class does not define an attribute of this name. */
static CYTHON_INLINE PyObject *get_class(PyObject *object, slot_entry *table, PyObject *name) {
    PyTypeObject *type = Py_TYPE(object);
    slot_entry *entry = &table[((size_t)type >> 5) % ENTRIES];
    if (entry->type == type && entry->version == type->tp_version_tag) return Py_NewRef((PyObject *)type);
    PyObject *found = _PyType_Lookup(type, name);
    if (type->tp_getattro == PyObject_GenericGetAttr && found == _PyType_Lookup(&PyBaseObject_Type, name)
        && PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) {
        entry->type = type;
        entry->version = type->tp_version_tag;
    }
    return PyObject_GetAttr(object, name);
}

/* object.shape == shape */
static CYTHON_INLINE int has_shape(PyObject *object, PyObject *shape, PyObject *name) {
    if (Py_TYPE(object) == &PyArray_Type && PyTuple_CheckExact(shape)) {
        PyArrayObject *array = (PyArrayObject *)object;
        int count = PyArray_NDIM(array), i = 0;
        if (count != PyTuple_GET_SIZE(shape)) return 0;
        for (; i < count && PyLong_CheckExact(PyTuple_GET_ITEM(shape, i)); i++)
            if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) != PyArray_DIM(array, i)) {
                if (PyErr_Occurred()) return -1;
                return 0;
            }
        if (i == count) return 1;
    }
    PyObject *found = PyObject_GetAttr(object, name);
    if (found == NULL) return -1;
    int equal = PyObject_RichCompareBool(found, shape, Py_EQ);
    Py_DECREF(found);
    return equal;
}

/* object.__new__(type) */
static CYTHON_INLINE PyObject *new_object(PyObject *type) {
    return ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
}

/* type() */
static CYTHON_INLINE PyObject *call_class(PyObject *type) {
    PyTypeObject *given = (PyTypeObject *)type;
    int plain = Py_TYPE(type) == &PyType_Type && given->tp_new == PyBaseObject_Type.tp_new
        && given->tp_init == PyBaseObject_Type.tp_init && !PyType_HasFeature(given, Py_TPFLAGS_IS_ABSTRACT);
    return plain ? new_object(type) : PyObject_CallNoArgs(type);
}

/* variable.get() of a ContextVar that has a default */
static CYTHON_INLINE PyObject *get_context(PyObject *variable) {
    PyObject *value = NULL;
    if (PyContextVar_Get(variable, NULL, &value) == 0 && value == NULL) PyErr_SetObject(PyExc_LookupError, variable);
    return value;
}

/* iterator.__next__() of an iterator without end */
static CYTHON_INLINE PyObject *get_next(PyObject *iterator) {
    return Py_TYPE(iterator)->tp_iternext(iterator);
}

/* The code of the innermost frame whose globals do not have the name mark, or None, and the index of its instruction. */
static PyObject *find_user_code(PyObject *mark, long *instruction) {
    *instruction = -1;
#if PY_VERSION_HEX < 0x030C0000 /* without frame objects, of which each takes 50 ns */
    for (_PyInterpreterFrame *frame = PyThreadState_Get()->cframe->current_frame; frame; frame = frame->previous) {
        if (_PyFrame_IsIncomplete(frame)) continue;
        int marked = PyDict_Contains(frame->f_globals, mark);
        if (marked < 0) return NULL;
        if (marked) continue;
        *instruction = (long)(_PyInterpreterFrame_LASTI(frame) * sizeof(_Py_CODEUNIT));
        return Py_NewRef((PyObject *)frame->f_code);
    }
#else
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame != NULL) {
        PyObject *globals = PyFrame_GetGlobals(frame);
        int marked = PyDict_Contains(globals, mark);
        Py_DECREF(globals);
        if (marked < 1) {
            PyObject *code = marked < 0 ? NULL : (PyObject *)PyFrame_GetCode(frame);
            *instruction = PyFrame_GetLasti(frame);
            Py_DECREF(frame);
            return code;
        }
        PyFrameObject *outer = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = outer;
    }
#endif
    return Py_NewRef(Py_None);
}

/* A global variable of a module, or a builtin. */
static CYTHON_INLINE PyObject *get_global(PyObject *space, PyObject *name) {
    PyObject *value = PyDict_GetItemWithError(space, name);
    if (value != NULL) return Py_NewRef(value);
    if (!PyErr_Occurred()) PyErr_SetObject(PyExc_NameError, name);
    return NULL;
}

/* A ufunc's inner loop for one dtype. Calls of small arrays run it without the preparations of a ufunc, which take most of
   the time: they are for other layouts, dtypes and subclasses, and for warnings, which the package drops. */
#define SMALL 500 /* from here on NumPy releases the lock of the interpreter */
typedef struct {
    PyUFuncObject *ufunc;
    int dtype, result;
    PyUFuncGenericFunction function;
    void *data;
} ufunc_loop;
static ufunc_loop loops[2][256];

static CYTHON_INLINE ufunc_loop *find_loop(PyUFuncObject *ufunc, int dtype) {
    ufunc_loop *loop = &loops[dtype == NPY_DOUBLE][((size_t)ufunc >> 5) % 256];
    if (loop->ufunc == ufunc) return loop;
    if (ufunc->nout != 1 || ufunc->nin > 2 || ufunc->core_enabled) return NULL;
    for (int i = 0; i < ufunc->ntypes; i++) {
        const char *types = ufunc->types + i * ufunc->nargs;
        if (types[0] != dtype || (ufunc->nin == 2 && types[1] != dtype) || ufunc->functions[i] == NULL) continue;
        *loop = (ufunc_loop){ufunc, dtype, types[ufunc->nin], ufunc->functions[i], ufunc->data ? ufunc->data[i] : NULL};
        return loop;
    }
    return NULL;
}

/* The number of dtype float32 or float64 if the object is a small, aligned and contiguous array of this dtype, else -1. */
static CYTHON_INLINE int simple_dtype(PyObject *object) {
    if (Py_TYPE(object) != &PyArray_Type) return -1;
    PyArrayObject *array = (PyArrayObject *)object;
    int dtype = PyArray_DESCR(array)->type_num;
    int simple = (dtype == NPY_FLOAT || dtype == NPY_DOUBLE) && PyArray_IS_C_CONTIGUOUS(array) && PyArray_ISALIGNED(array)
        && PyArray_ISNOTSWAPPED(array) && PyArray_SIZE(array) < SMALL && PyArray_SIZE(array) > 0;
    return simple ? dtype : -1;
}

/* ufunc(first[, second]) by the inner loop, or NULL without an error if it must be called. */
static PyObject *run_loop(PyUFuncObject *ufunc, PyObject *first, PyObject *second) {
    int dtype = simple_dtype(first);
    if (dtype < 0 || (second != NULL && simple_dtype(second) != dtype)) return NULL;
    PyArrayObject *a = (PyArrayObject *)first, *b = (PyArrayObject *)second;
    npy_intp size = PyArray_SIZE(a), steps[3] = {PyArray_ITEMSIZE(a), PyArray_ITEMSIZE(a), 0};
    if (second != NULL) {
        if (PyArray_NDIM(b) == 0 && PyArray_NDIM(a) != 0) steps[1] = 0;
        else if (PyArray_NDIM(a) != PyArray_NDIM(b)
            || memcmp(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a) * sizeof(npy_intp))) return NULL;
    }
    ufunc_loop *loop = find_loop(ufunc, dtype);
    if (loop == NULL) return NULL;
    PyObject *result = PyArray_SimpleNew(PyArray_NDIM(a), PyArray_DIMS(a), loop->result);
    if (result == NULL) return NULL;
    char *data[3] = {PyArray_BYTES(a), second != NULL ? PyArray_BYTES(b) : PyArray_BYTES((PyArrayObject *)result),
        PyArray_BYTES((PyArrayObject *)result)};
    steps[second != NULL ? 2 : 1] = PyArray_ITEMSIZE((PyArrayObject *)result);
    loop->function(data, &size, steps, loop->data);
    return result;
}

/* function(first) or function(first, second), whose result is converted by asarray afterwards */
static CYTHON_INLINE PyObject *call_1(PyObject *function, PyObject *first) {
    if (Py_TYPE(function) == &PyUFunc_Type && ((PyUFuncObject *)function)->nin == 1) {
        PyObject *result = run_loop((PyUFuncObject *)function, first, NULL);
        if (result != NULL || PyErr_Occurred()) return result;
    }
    return PyObject_CallOneArg(function, first);
}

static CYTHON_INLINE PyObject *call_2(PyObject *function, PyObject *first, PyObject *second) {
    if (Py_TYPE(function) == &PyUFunc_Type && ((PyUFuncObject *)function)->nin == 2) {
        PyObject *result = run_loop((PyUFuncObject *)function, first, second);
        if (result != NULL || PyErr_Occurred()) return result;
    }
    PyObject *args[2] = {first, second};
    return PyObject_Vectorcall(function, args, 2, NULL);
}

static PyUFuncObject *np_multiply, *np_add, *np_subtract, *np_divide;

static int start_numpy(void) {
    if (_import_array() < 0 || _import_umath() < 0) return -1;
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL) return -1;
    np_multiply = (PyUFuncObject *)PyObject_GetAttrString(numpy, "multiply");
    np_add = (PyUFuncObject *)PyObject_GetAttrString(numpy, "add");
    np_subtract = (PyUFuncObject *)PyObject_GetAttrString(numpy, "subtract");
    np_divide = (PyUFuncObject *)PyObject_GetAttrString(numpy, "divide");
    Py_DECREF(numpy);
    return np_multiply && np_add && np_subtract && np_divide ? 0 : -1;
}

/* An operator on gradients: arrays, NumPy scalars or Tensors. A 0-d result of an operator is a NumPy scalar. */
#define OPERATOR(name, ufunc, number)                                                                  \
    static CYTHON_INLINE PyObject *name(PyObject *first, PyObject *second) {                            \
        if (Py_TYPE(first) == &PyArray_Type && Py_TYPE(second) == &PyArray_Type                         \
            && PyArray_NDIM((PyArrayObject *)first) != 0) {                                             \
            PyObject *result = run_loop(ufunc, first, second);                                          \
            if (result != NULL || PyErr_Occurred()) return result;                                      \
        }                                                                                               \
        return number(first, second);                                                                   \
    }
OPERATOR(op_multiply, np_multiply, PyNumber_Multiply)
OPERATOR(op_add, np_add, PyNumber_Add)
OPERATOR(op_subtract, np_subtract, PyNumber_Subtract)
OPERATOR(op_divide, np_divide, PyNumber_TrueDivide)
