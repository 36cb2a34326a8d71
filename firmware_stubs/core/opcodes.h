/* Generated from innet/program/opcodes.py; change it there and run `python -m innet.program.opcodes`. */
#ifndef MOTELOOM_OPCODES_H
#define MOTELOOM_OPCODES_H

#define ML_STACK_DEPTH 8
#define ML_MAX_CODE 64

#define ML_OP_HALT 0x00u /* The end; the reading is sent. */
#define ML_OP_LOAD 0x01u /* Push the value sampled on `channel`; null if the sensor gave none. */
#define ML_OP_OUT 0x02u /* Pop a value and put it into the reading, in the place of `channel`. */

/* X(name, number, operand bytes, values popped, values pushed) */
#define ML_OPCODES(X) \
    X(HALT, 0x00u, 0, 0, 0) \
    X(LOAD, 0x01u, 1, 0, 1) \
    X(OUT, 0x02u, 1, 1, 0)

#endif
