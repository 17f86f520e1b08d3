"""The libraries for Spark Connect, imported on first use: that takes a second."""

from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import Any


class Libraries:
    @cached_property
    def grpc(self) -> Any:
        return import_module("grpc")

    @cached_property
    def proto(self) -> Any:
        """The messages of Spark Connect."""
        return import_module("pyspark.sql.connect.proto")

    @cached_property
    def statuses(self) -> Any:
        """The module by which gRPC carries error statuses."""
        return import_module("grpc_status.rpc_status")

    @cached_property
    def status(self) -> Any:
        """The class of an error status."""
        return import_module("google.rpc.status_pb2").Status

    @cached_property
    def error_info(self) -> Any:
        """The class of a detail of an error status."""
        return import_module("google.rpc.error_details_pb2").ErrorInfo

    @cached_property
    def undecodable(self) -> Any:
        """The class of the error for bytes that are no message."""
        return import_module("google.protobuf.message").DecodeError

    @cached_property
    def reader(self) -> Any:
        """protobuf's reader in C, if that is the one in use; None otherwise."""
        with suppress(ImportError):
            return import_module("google._upb._message")
        return None

    def builder(self, url: str) -> Any:
        return import_module("pyspark.sql.connect.client.core").DefaultChannelBuilder(url)


LIB = Libraries()
