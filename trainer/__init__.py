"""The trainer: asynchronous RL of a policy against a verifiable reward, run by a recipe.

It imports nothing of ours but `forecurve`, and is reached only by launching `python -m trainer`.
"""
