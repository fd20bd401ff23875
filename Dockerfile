# docker build --tag=scalable_agent .
# docker run --rm --volume=/tmp/pong:/logdir scalable_agent \
#     --recipe=appo_pong --logdir=/logdir
FROM python:3.11-slim
WORKDIR /scalable_agent
# Videos of robots are drawn by EGL.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libegl1 libgl1 \
    && rm -rf /var/lib/apt/lists/*
COPY constraints.txt setup.py pyproject.toml README.md LICENSE ./
COPY scalable_agent scalable_agent
RUN python -m pip install --no-cache-dir --constraint=constraints.txt \
    '.[atari,minigrid,vizdoom,mujoco,box2d,plot,video]'
ENTRYPOINT ["scalable-agent"]
