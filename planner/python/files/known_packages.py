"""What other packages offer that opens no file by itself, and what opens only the file it is called with.

Anything that is not in these tables may open any file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

EVERY_NAME: frozenset[str] = frozenset()

# Packages of which every name is harmless, except modules that they import themselves.
_WHOLE = """
    __future__ abc array base64 binascii bisect calendar cmath collections collections.abc colorsys concurrent.futures
    contextlib contextvars copy csv dataclasses datetime decimal difflib enum errno fnmatch fractions functools graphlib
    hashlib heapq hmac html ipaddress itertools json keyword math numbers operator pprint queue random re reprlib
    secrets select statistics string struct textwrap threading time types typing unicodedata urllib.error urllib.parse
    uuid warnings weakref zlib

    sqlmesh mergeplan sqlglot pyspark.errors pyspark.sql.functions pyspark.sql.types pyspark.sql.window

    arrow attr attrs cachetools croniter dateutil.parser dateutil.relativedelta dateutil.rrule h3 holidays humanize
    isodate jmespath more_itertools orjson pendulum pytz rapidfuzz simplejson slugify structlog tenacity toolz tqdm
    typing_extensions tzlocal ujson unidecode xxhash
""".split()

# Packages of which only these names are harmless.
_IN_PART = {
    "asyncio": """CancelledError Event Future Lock Queue Semaphore Task TaskGroup TimeoutError as_completed create_task
        gather get_event_loop new_event_loop run sleep timeout to_thread wait wait_for""",
    "boto3": "Session client resource",
    "bs4": "BeautifulSoup Tag",
    "bz2": "compress decompress",
    "dateutil.tz": "UTC tzlocal tzoffset tzutc",
    "faker": "Faker",
    "google.cloud.bigquery": "Client QueryJobConfig ScalarQueryParameter",
    "google.cloud.storage": "Client",
    "gzip": "compress decompress",
    "http": "HTTPMethod HTTPStatus",
    "http.client": "HTTPConnection HTTPException HTTPSConnection",
    "httpx": "AsyncClient Client HTTPError HTTPStatusError Response Timeout delete get head patch post put request",
    "io": "BufferedIOBase BytesIO IOBase RawIOBase StringIO TextIOBase TextIOWrapper",
    "logging": """CRITICAL DEBUG ERROR Filter Formatter Handler INFO LogRecord Logger LoggerAdapter NOTSET NullHandler
        StreamHandler WARNING addLevelName basicConfig captureWarnings critical debug disable error exception
        getLevelName getLogger info log warn warning""",
    "loguru": "logger",
    "lzma": "compress decompress",
    "os": """PathLike cpu_count curdir environ fspath getcwd getenv getpid linesep makedirs mkdir name pardir pathsep
        remove rmdir sep unlink urandom""",
    "os.path": """abspath basename commonpath commonprefix dirname expanduser expandvars isabs join normcase normpath
        realpath relpath sep split splitdrive splitext""",
    "pathlib": "PurePath PurePosixPath PureWindowsPath",
    "polars": """Array Binary Boolean Categorical DataFrame DataType Date Datetime Decimal Duration Enum Expr Float32
        Float64 Int16 Int32 Int64 Int8 LazyFrame List Null Object Schema Series String Struct Time UInt16 UInt32 UInt64
        UInt8 Utf8 all any coalesce col concat concat_list concat_str count date date_range datetime duration element
        exclude first format from_arrow from_dict from_dicts from_pandas last len lit max mean median min n_unique
        selectors struct sum when""",
    "psycopg": "connect",
    "psycopg2": "connect",
    "pymssql": "connect",
    "pyarrow": """Array ChunkedArray RecordBatch Schema Table array binary bool_ chunked_array concat_tables date32
        date64 decimal128 dictionary field float32 float64 int16 int32 int64 int8 large_string list_ map_ null
        record_batch scalar schema string struct table time32 time64 timestamp types uint16 uint32 uint64 uint8 utf8""",
    "pyarrow.compute": "*",
    "pydantic": """BaseModel ConfigDict Field RootModel TypeAdapter ValidationError computed_field field_validator
        model_validator validator""",
    "pyspark": "sql",
    "pyspark.sql": """Catalog Column DataFrame DataFrameNaFunctions DataFrameReader DataFrameStatFunctions
        DataFrameWriter GroupedData Row SparkSession UDFRegistration Window WindowSpec""",
    "pyspark.sql.dataframe": "DataFrame",
    "pyspark.sql.column": "Column",
    "pyspark.sql.session": "SparkSession",
    "pyspark.sql.udf": "UserDefinedFunction",
    "requests": """ConnectionError HTTPError JSONDecodeError PreparedRequest Request RequestException Response Session
        Timeout adapters auth codes delete exceptions get head options patch post put request session""",
    "scipy": "cluster constants fft integrate interpolate linalg optimize signal spatial special stats",
    "sklearn": """base cluster compose covariance cross_decomposition decomposition discriminant_analysis dummy ensemble
        exceptions gaussian_process impute isotonic kernel_ridge linear_model manifold metrics mixture model_selection
        multiclass multioutput naive_bayes neighbors neural_network pipeline preprocessing semi_supervised svm tree""",
    "sys": """argv byteorder exc_info exit flags float_info getdefaultencoding getrecursionlimit getsizeof hexversion
        implementation int_info intern maxsize platform setrecursionlimit stderr stdout version version_info""",
    "tempfile": """NamedTemporaryFile SpooledTemporaryFile TemporaryDirectory TemporaryFile gettempdir mkdtemp
        mkstemp""",
    "tomllib": "TOMLDecodeError load loads",
    "urllib": "error parse",
    "urllib.request": "Request",
    "xml.etree.ElementTree": "Element ParseError SubElement XML fromstring tostring",
    "xml.sax.saxutils": "*",
    "yaml": """CSafeDumper CSafeLoader SafeDumper SafeLoader YAMLError dump load safe_dump safe_load safe_load_all""",
    "zipfile": "BadZipFile",
    "zoneinfo": "ZoneInfo ZoneInfoNotFoundError available_timezones",
    "pandas": """ArrowDtype BooleanDtype Categorical CategoricalDtype CategoricalIndex DataFrame DateOffset
        DatetimeIndex DatetimeTZDtype Flags Float32Dtype Float64Dtype Grouper Index IndexSlice Int16Dtype Int32Dtype
        Int64Dtype Int8Dtype Interval IntervalDtype IntervalIndex MultiIndex NA NaT NamedAgg Period PeriodDtype
        PeriodIndex RangeIndex Series SparseDtype StringDtype Timedelta TimedeltaIndex Timestamp UInt16Dtype UInt32Dtype
        UInt64Dtype UInt8Dtype __version__ api array arrays bdate_range concat crosstab cut date_range describe_option
        errors factorize from_dummies get_dummies get_option infer_freq interval_range isna isnull json_normalize
        lreshape melt merge merge_asof merge_ordered notna notnull offsets option_context options period_range pivot
        pivot_table qcut read_clipboard read_gbq read_sql read_sql_query read_sql_table reset_option set_option testing
        timedelta_range to_datetime to_numeric to_timedelta tseries unique value_counts wide_to_long""",
    "numpy": """
        False_ ScalarType True_ __version__ abs absolute acos acosh add all allclose amax amin angle any append
        apply_along_axis apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax
        argmin argpartition argsort argwhere around array array2string array_equal array_equiv array_repr
        array_split array_str asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray asin asinh
        asmatrix astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett base_repr binary_repr
        bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor blackman block bmat bool bool_ broadcast broadcast_arrays
        broadcast_shapes broadcast_to busday_count busday_offset busdaycalendar byte bytes_ c_ can_cast cbrt
        cdouble ceil character choose clip clongdouble column_stack common_type complex128 complex256 complex64
        complexfloating compress concat concatenate conj conjugate convolve copy copysign copyto corrcoef
        correlate cos cosh count_nonzero cov cross csingle cumprod cumsum cumulative_prod cumulative_sum
        datetime64 datetime_as_string datetime_data deg2rad degrees delete diag diag_indices diag_indices_from
        diagflat diagonal diff digitize divide divmod dot double dsplit dstack dtype e ediff1d einsum
        einsum_path empty empty_like equal errstate euler_gamma exceptions exp exp2 expand_dims expm1 extract
        eye fabs fft fill_diagonal finfo fix flatiter flatnonzero flexible flip fliplr flipud float128 float16
        float32 float64 float_power floating floor floor_divide fmax fmin fmod format_float_positional
        format_float_scientific frexp from_dlpack frombuffer fromfunction fromiter frompyfunc fromstring full
        full_like gcd generic geomspace geterr gradient greater greater_equal half hamming hanning heaviside
        histogram histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0 identity iinfo imag
        index_exp indices inexact inf inner insert int16 int32 int64 int8 int_ intc integer interp intersect1d
        intp invert is_busday isclose iscomplex iscomplexobj isdtype isfinite isfortran isin isinf isnan isnat
        isneginf isposinf isreal isrealobj isscalar issubdtype iterable ix_ kaiser kron lcm ldexp left_shift
        less less_equal lexsort linalg linspace little_endian log log10 log1p log2 logaddexp logaddexp2
        logical_and logical_not logical_or logical_xor logspace long longdouble longlong mask_indices matmul
        matrix matrix_transpose matvec max maximum may_share_memory mean median meshgrid mgrid min
        min_scalar_type minimum mintypecode mod modf moveaxis multiply nan nan_to_num nanargmax nanargmin
        nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum
        nanvar ndarray ndenumerate ndim ndindex nditer negative nested_iters newaxis nextafter nonzero not_equal
        number object_ ogrid ones ones_like outer packbits pad partition percentile permute_dims pi piecewise
        place poly poly1d polyadd polyder polydiv polyfit polyint polymul polynomial polysub polyval positive
        pow power printoptions prod promote_types ptp put put_along_axis putmask quantile r_ rad2deg radians
        random ravel ravel_multi_index real real_if_close reciprocal record remainder repeat require reshape
        resize result_type right_shift rint roll rollaxis roots rot90 round s_ sctypeDict searchsorted select
        set_printoptions setdiff1d seterr setxor1d shape shares_memory short sign signbit signedinteger sin sinc
        single sinh size sort sort_complex spacing split sqrt square squeeze stack std str_ strings subtract sum
        swapaxes take take_along_axis tan tanh tensordot tile timedelta64 trace transpose trapezoid tri tril
        tril_indices tril_indices_from trim_zeros triu triu_indices triu_indices_from true_divide trunc
        typecodes typename typing ubyte ufunc uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong
        union1d unique unique_all unique_counts unique_inverse unique_values unpackbits unravel_index
        unsignedinteger unstack unwrap ushort vander var vdot vecdot vecmat vectorize void vsplit vstack where
        zeros zeros_like""",
}
# Names that lead to other code from packages that are harmless otherwise.
_EXCEPT = frozenset(("typing.get_type_hints", "typing_extensions.get_type_hints", "sqlglot.executor"))

_READERS = ("filepath_or_buffer", "path_or_buf", "path", "io", "source", "file", "filename", "fname", "url")
_OPENERS = """
    builtins.open io.open codecs.open gzip.open bz2.open lzma.open zipfile.ZipFile
    pandas.read_csv pandas.read_table pandas.read_fwf pandas.read_parquet pandas.read_json pandas.read_excel
    pandas.read_feather pandas.read_orc pandas.ExcelFile
    numpy.load numpy.loadtxt numpy.genfromtxt numpy.fromfile numpy.fromregex
    polars.read_csv polars.read_parquet polars.read_json polars.read_ndjson polars.read_excel polars.scan_csv
    polars.scan_parquet polars.scan_ndjson
    pyarrow.parquet.read_table pyarrow.csv.read_csv pyarrow.json.read_json pyarrow.feather.read_table
    os.stat os.lstat os.path.exists os.path.isfile os.path.isdir os.path.getsize os.path.islink
    xml.etree.ElementTree.parse urllib.request.urlopen
    glob.glob glob.iglob os.listdir
""".split()
PATTERNS = frozenset(("glob.glob", "glob.iglob"))
PATHS = frozenset(("pathlib.Path", "pathlib.PosixPath"))
BUFFERS = frozenset(("io.StringIO", "io.BytesIO"))
JOINS = frozenset(("os.path.join", "pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath", "pathlib.PurePosixPath"))
SAME_PATH = frozenset(
    """builtins.str os.fspath os.path.abspath os.path.realpath os.path.normpath os.path.expanduser
    urllib.request.Request""".split()
)
REMOTE = frozenset("http https s3 s3a s3n gs gcs abfs abfss wasb wasbs hdfs ftp sftp jdbc".split())
_DUNDERS = frozenset(("__name__", "__version__", "__members__"))


@dataclass(frozen=True)
class Opener:
    """A function that opens the file that its first argument, or one of these keywords, names."""

    keywords: tuple[str, ...] = _READERS
    refuses: tuple[str, ...] = ("allow_pickle", "opener")  # keywords with which it may run or open something else


OPENERS: Mapping[str, Opener] = {name: Opener() for name in _OPENERS}
WHOLE_OR_IN_PART: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_WHOLE, EVERY_NAME),
    **{name: EVERY_NAME if names == "*" else frozenset(names.split()) for name, names in _IN_PART.items()},
}
_SHORT = frozenset("bltns docscrape np pa pd pyspark rich".split())  # as which packages import others
_LEAKS = sys.stdlib_module_names - set(_WHOLE)  # a module's own imports are its attributes


def opens_no_file(dotted: str) -> bool:
    """True if this name of another package opens no file by itself.

    >>> opens_no_file("pandas.DataFrame"), opens_no_file("pandas.read_xml"), opens_no_file("json.codecs.open")
    (True, False, False)
    """
    parts = dotted.split(".")
    if any(dotted == name or dotted.startswith(f"{name}.") for name in _EXCEPT):
        return False
    for end in range(len(parts) - 1, 0, -1):
        names = WHOLE_OR_IN_PART.get(".".join(parts[:end]))
        if names is not None:
            return (names == EVERY_NAME or parts[end] in names) and not any(
                _is_leak(part, names) for part in parts[end:]
            )
    return False


def _is_leak(part: str, names: frozenset[str]) -> bool:
    """True for a name that leads from a package to a module that it imports, or to what it hides."""
    if part in names or part in _DUNDERS:
        return False
    return part in _LEAKS or part in _SHORT or part.startswith("_")
