"""Does it replicate over corpora, checkpoints, or models of several seeds?"""
