/* Generated from innet/program/opcodes.py; change it there and run `python -m innet.program.opcodes`. */
#ifndef MOTELOOM_OPCODES_H
#define MOTELOOM_OPCODES_H

#define ML_STACK_DEPTH 8
#define ML_CELLS 8
#define ML_MAX_KEYS 4
#define ML_MAX_CODE 1024
#define ML_NO_SLOT 0xffffu

#define ML_OP_HALT 0x00u /* The end. */
#define ML_OP_LOAD 0x01u /* Push the value sampled on `channel`; null if the sensor gave none. */
#define ML_OP_OUT 0x02u /* Pop a value and put it into the reading, in the place of `channel`. */
#define ML_OP_WANT 0x03u /* A reading is due at this tick; unless SEND follows, it was filtered. */
#define ML_OP_SEND 0x04u /* The reading is sent. */
#define ML_OP_PEER 0x05u /* Push the value of another sampling at this tick. */
#define ML_OP_HERE 0x06u /* Push whether another sampling is due at this tick, too. */
#define ML_OP_EVERY 0x07u /* Push whether this tick is a multiple of `ticks`. */
#define ML_OP_WITHIN 0x0fu /* Push whether this tick is less than `ticks` behind the last tick that is at `edge` of a `period`. */
#define ML_OP_SITE 0x08u /* Push the number of this mote. */
#define ML_OP_NULL 0x09u /* Push null, or unknown. */
#define ML_OP_LIT8 0x0au /* Push a number. */
#define ML_OP_LIT16 0x0bu /* Push a number. */
#define ML_OP_LIT32 0x0cu /* Push a number. */
#define ML_OP_STORE 0x0du /* Pop a value into a cell. */
#define ML_OP_FETCH 0x0eu /* Push the value of a cell; null before the first STORE. */
#define ML_OP_ADD 0x10u /* Null with a null, here and below. */
#define ML_OP_SUB 0x11u /* The lower value minus the one on top. */
#define ML_OP_MUL 0x12u /* The product. */
#define ML_OP_DIV 0x13u /* Cut towards zero; by zero, null. */
#define ML_OP_MOD 0x14u /* With the sign of the dividend; by zero, null. */
#define ML_OP_NEG 0x15u /* The value with the other sign. */
#define ML_OP_ABS 0x16u /* The value without its sign. */
#define ML_OP_LEAST 0x17u /* The smaller one; a null is left out. */
#define ML_OP_GREATEST 0x18u /* The larger one; a null is left out. */
#define ML_OP_ELSE 0x19u /* The lower value unless it is null, then the one on top. */
#define ML_OP_EQ 0x20u /* Unknown with a null, here and in all comparisons. */
#define ML_OP_NE 0x21u /* Unequal. */
#define ML_OP_LT 0x22u /* Whether the lower value is less than the one on top. */
#define ML_OP_LE 0x23u /* Less or equal. */
#define ML_OP_GT 0x24u /* Greater. */
#define ML_OP_GE 0x25u /* Greater or equal. */
#define ML_OP_AND 0x26u /* False wins over unknown, unknown over true. */
#define ML_OP_OR 0x27u /* True wins over unknown, unknown over false. */
#define ML_OP_NOT 0x28u /* Unknown stays unknown. */
#define ML_OP_ISNULL 0x29u /* Whether the value is null; never unknown. */
#define ML_OP_PICK 0x2au /* Of a truth and two values: the lower value if it is true, else the one on top. */
#define ML_OP_SKIP 0x30u /* Pop a truth; unless it is true, go on so many bytes further. */
#define ML_OP_MARK 0x38u /* The reading belongs to `table`; unless ENTER follows, to no group of it. */
#define ML_OP_KEY 0x39u /* Pop the next key of a group. */
#define ML_OP_ENTER 0x3au /* Take the group with these keys, in the slice of this tick. */
#define ML_OP_FOLD 0x3bu /* Pop a value and fold it into a place of the group; no null. */
#define ML_OP_TABLE 0x40u /* Declare a table: how many sites have a slot and which one is this, keys of a group, room, where slices are cut. */
#define ML_OP_KEEP 0x41u /* The table declared last keeps a state of this kind in each group. */

#define ML_KEEP_COUNT 0
#define ML_KEEP_SUM 1
#define ML_KEEP_VARIANCE 2
#define ML_KEEP_MIN 3
#define ML_KEEP_MAX 4
#define ML_KEEP_FIRST 5
#define ML_KEEP_LAST 6

/* X(name, number, operand bytes, values popped, values pushed) */
#define ML_OPCODES(X) \
    X(HALT, 0x00u, 0, 0, 0) \
    X(LOAD, 0x01u, 1, 0, 1) \
    X(OUT, 0x02u, 1, 1, 0) \
    X(WANT, 0x03u, 0, 0, 0) \
    X(SEND, 0x04u, 0, 0, 0) \
    X(PEER, 0x05u, 2, 0, 1) \
    X(HERE, 0x06u, 1, 0, 1) \
    X(EVERY, 0x07u, 4, 0, 1) \
    X(WITHIN, 0x0fu, 12, 0, 1) \
    X(SITE, 0x08u, 0, 0, 1) \
    X(NULL, 0x09u, 0, 0, 1) \
    X(LIT8, 0x0au, 1, 0, 1) \
    X(LIT16, 0x0bu, 2, 0, 1) \
    X(LIT32, 0x0cu, 4, 0, 1) \
    X(STORE, 0x0du, 1, 1, 0) \
    X(FETCH, 0x0eu, 1, 0, 1) \
    X(ADD, 0x10u, 0, 2, 1) \
    X(SUB, 0x11u, 0, 2, 1) \
    X(MUL, 0x12u, 0, 2, 1) \
    X(DIV, 0x13u, 0, 2, 1) \
    X(MOD, 0x14u, 0, 2, 1) \
    X(NEG, 0x15u, 0, 1, 1) \
    X(ABS, 0x16u, 0, 1, 1) \
    X(LEAST, 0x17u, 0, 2, 1) \
    X(GREATEST, 0x18u, 0, 2, 1) \
    X(ELSE, 0x19u, 0, 2, 1) \
    X(EQ, 0x20u, 0, 2, 1) \
    X(NE, 0x21u, 0, 2, 1) \
    X(LT, 0x22u, 0, 2, 1) \
    X(LE, 0x23u, 0, 2, 1) \
    X(GT, 0x24u, 0, 2, 1) \
    X(GE, 0x25u, 0, 2, 1) \
    X(AND, 0x26u, 0, 2, 1) \
    X(OR, 0x27u, 0, 2, 1) \
    X(NOT, 0x28u, 0, 1, 1) \
    X(ISNULL, 0x29u, 0, 1, 1) \
    X(PICK, 0x2au, 0, 3, 1) \
    X(SKIP, 0x30u, 2, 1, 0) \
    X(MARK, 0x38u, 1, 0, 0) \
    X(KEY, 0x39u, 0, 1, 0) \
    X(ENTER, 0x3au, 1, 0, 0) \
    X(FOLD, 0x3bu, 1, 1, 0) \
    X(TABLE, 0x40u, 19, 0, 0) \
    X(KEEP, 0x41u, 1, 0, 0)

#endif
