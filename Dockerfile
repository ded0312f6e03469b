# syntax=docker/dockerfile:1
# One image for API processes, controllers, migrations, and the runtime servers of SampleSets. docs/install.md describes it.
#
# BASE_IMAGE is any image with Python 3.11 or newer and its module venv. For an image that can be reproduced, give its digest.
# JUICEFS=no leaves juicefs out, which only the runtime servers of SampleSets run. On other processors than x86-64 it is
# always left out, because the lock file has no program for them.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS build
ARG JUICEFS=yes
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_COMPILE=1 PIP_CACHE_DIR=/var/cache/pip
WORKDIR /build
RUN python3 -m venv /opt/tools && python3 -m venv --without-pip /opt/jobgate
COPY requirements/otel.txt requirements/image.txt requirements/
# A build behind a mirror passes the configuration of pip as the secret `pip`, so that it is in no layer of the image.
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=cache,target=/var/cache/pip \
    /opt/tools/bin/pip install --quiet --require-hashes --requirement requirements/image.txt \
    && /opt/tools/bin/pip --python /opt/jobgate/bin/python install --quiet --require-hashes --requirement requirements/otel.txt
# Only the program of the package is used, and not its library, which is as large. Its licence and the place of its source
# must accompany it (decision 0029).
RUN mkdir -p /opt/juicefs/bin /opt/juicefs/share/doc/juicefs \
    && packages=$(/opt/tools/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
    && if [ "$JUICEFS" = yes ] && [ -f "$packages/juicefs/lib/juicefs" ]; then \
        install -m 755 "$packages/juicefs/lib/juicefs" /opt/juicefs/bin/juicefs \
        && install -m 644 "$packages"/juicefs-*.dist-info/LICENSE /opt/juicefs/share/doc/juicefs/LICENSE \
        && printf '%s, unchanged. Source: https://github.com/juicedata/juicefs\n' "$(/opt/juicefs/bin/juicefs --version)" \
            > /opt/juicefs/share/doc/juicefs/SOURCE; fi
COPY dashboard dashboard
COPY openapi openapi
# The page offers the examples as templates, and completes pod templates by their schema.
COPY examples examples
COPY app/domain/data/pod_template.schema.json app/domain/data/
COPY tools/dashboard.py tools/notices.py tools/
# A build behind a mirror of npm passes its configuration as the secret `npm`.
RUN --mount=type=secret,id=npm,target=/etc/npmrc --mount=type=cache,target=/var/cache/npm \
    NPM_CONFIG_GLOBALCONFIG=/etc/npmrc NPM_CONFIG_CACHE=/var/cache/npm /opt/tools/bin/python -m tools.dashboard build
COPY . .
# The root of a container is read-only, so modules are compiled here. Their hashes, unlike their times, can be reproduced.
RUN /opt/tools/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /build/dist ./jobgate . \
    && /opt/tools/bin/pip --python /opt/jobgate/bin/python install --quiet --no-index --no-deps /build/dist/*.whl \
    && /opt/jobgate/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/jobgate/lib

FROM ${BASE_IMAGE}
ARG VERSION=0.2.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="jobgate" \
      org.opencontainers.image.description="One HTTP API in front of Kubernetes for distributed training jobs" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0 AND AGPL-3.0-or-later"
COPY --from=build /opt/juicefs/ /usr/local/
COPY --from=build /opt/jobgate /opt/jobgate
ENV PATH=/opt/jobgate/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# The user of deploy/. It needs no entry in /etc/passwd, and owns no file of the image.
USER 10001:10001
WORKDIR /tmp
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["jobgate"]
CMD ["serve", "--host", "0.0.0.0"]
