"""Chapter 4 of the thesis: dropping whole windows, where and at what cost; and windows estimated from a part.

In comes nothing but the length of the run. Out go results whose figures are drop rates, speeds and coverages.
"""
