# Commands of docs/evidence/removing-heads.md, to be copied: names in capitals and files are yours.

# The models.
MAKE="python -m docs.studies.fine_tuning model --model"
$MAKE minilm-l6 --task sst2 --data SST-2 --out sst2-l6  # and minilm-l3
$MAKE minilm-l6 --task cola --data CoLA --examples 6000 --out cola-l6
$MAKE minilm-l6 --task mrpc --data MRPC --examples 4000 --out mrpc-l6
$MAKE gte-small --task sst2 --data SST-2 --examples 3000 --epochs 1 --out sst2-gte

# Pruning curves: of SST-2, CoLA and MRPC, and pairs of orders.
SST2="train_part2.tsv --examples 500 --test dev.tsv"
COLA="in_domain_train.tsv --no-header --text-columns 3 --label-column 1 --examples 300 --test in_domain_dev.tsv"
head -n 401 msr_paraphrase_test.txt > test-400.txt  # in the tables: 400 drawn at random
MRPC="msr_paraphrase_train.txt --examples 150 --test test-400.txt"
ALL=importance,importance:signed,reestimated,ablation,bottom,top,middle,both_ends,alternate,random
headroles pruning-curves sst2-l6 $SST2 --orders $ALL --shares 0.5,0.83 --draws 8 --correction holm --out curves-sst2
headroles pruning-curves cola-l6 $COLA --orders $ALL --shares 0.33,0.5 --draws 8 --correction holm --out curves-cola
headroles pruning-curves mrpc-l6 $MRPC --orders $ALL --shares 0.33,0.5 --draws 5 --correction holm --out curves-mrpc
python -m docs.studies.removed orders --curves curves-sst2 --pairs reestimated,importance both_ends,middle bottom,top

# Translation: opus-mt-zh-en, whose TOKENIZER of targets is a stand-in; pairs in halves.
headroles importance opus-mt-zh-en pairs.tsv --target-tokenizer TOKENIZER --out DIR
headroles ablate opus-mt-zh-en pairs.tsv --target-tokenizer TOKENIZER --sets kinds,layers --examples 100 --out DIR
headroles ablate opus-mt-zh-en 32-short-pairs.tsv --target-tokenizer TOKENIZER --sets single --out DIR  # and importance
headroles classify opus-mt-zh-en first-half.bitext --links-from 1 --attention cross --target-tokenizer TOKENIZER \
    --target-rows input --threshold 8 --roles aligned --out ROLES
headroles by-role opus-mt-zh-en 24-of-the-second-half.tsv --target-tokenizer TOKENIZER --roles-from ROLES \
    --roles aligned --attention cross --draws 199 --permutations 999 --out DIR
headroles by-role opus-mt-zh-en 96-of-the-second-half.tsv --target-tokenizer TOKENIZER --roles-from ROLES --roles aligned \
    --examples 32 --draws 39 --generate --ignore-case --longest-translation 60 --out DIR
headroles pruning-curves opus-mt-zh-en first-half.tsv --test 32-of-the-second-half.tsv --target-tokenizer TOKENIZER \
    --attention encoder --orders importance,random --shares 0.6 --examples 16 --generate --ignore-case \
    --longest-translation 60 --out DIR  # and decoder, cross
headroles prune opus-mt-zh-en first-half.tsv --target-tokenizer TOKENIZER --attention cross --share 0.6 --examples 64 \
    --test 64-of-the-second-half.tsv --out FOLDER

# Learnt gates.
python -m docs.studies.removed gates --model sst2-l6 --learn-on train_part2.tsv --test-on dev.tsv \
    --keep 6 12 24 36 --seeds 3 --updates 200 --draws 5 --examples 500 --update-examples 16

# Estimators and the loss without a head.
headroles importance MODEL TASK --examples N --out imp
headroles ablate MODEL TASK --examples N --out abl
python -m docs.studies.removed estimators --importance imp --ablation abl
