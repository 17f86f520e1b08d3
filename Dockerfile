# The bot as a service. State, mirrors and catalogs are in the volume /data; Java comes with the Python packages.
# --build-arg DISTRIBUTION=mergeplan-client makes an image without Spark and Java, for a Spark elsewhere: half the size.
FROM python:3.12-slim AS build

ARG DISTRIBUTION=mergeplan
WORKDIR /source
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY release release
COPY mergeplan mergeplan
COPY planner planner
COPY bot bot
# Compiled here: at run time the user may not write there. A file's hash stands in for its time, so that a second build
# is the same.
RUN release/install "$DISTRIBUTION" /opt/mergeplan tracing \
    && find /opt/mergeplan -name __pycache__ -prune -exec rm -r {} + \
    && /opt/mergeplan/bin/python -W ignore -m compileall -qq -j 0 --invalidation-mode unchecked-hash \
        -x '/(tests|pip|setuptools|pyspark/(examples|pandas|ml|mllib))/' /opt/mergeplan/lib

FROM python:3.12-slim

# Debian keeps one version of git at a time: a version that is named here could not be installed next month.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log /var/cache/ldconfig \
    && useradd --create-home --no-log-init --uid 10001 mergeplan \
    && install --directory --owner mergeplan --group mergeplan /data
COPY --from=build /opt/mergeplan /opt/mergeplan

USER 10001
WORKDIR /data
ENV PATH=/opt/mergeplan/bin:$PATH \
    MERGEPLAN_HOME=/data \
    MERGEPLAN_HOST=0.0.0.0 \
    MERGEPLAN_PORT=8000 \
    PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['MERGEPLAN_PORT'] + '/healthz', timeout=4)"]
ENTRYPOINT ["mergeplan"]
CMD ["serve"]
