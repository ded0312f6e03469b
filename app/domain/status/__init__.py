"""From raw pods to one honest status: observed -> diagnosis -> attempts -> rollup."""
