// check_lines.h: how a process under `vram check` passes its findings on. VRAM_SIM_CHECK names a folder; each process appends to a file of
// its own there. A finding is a group of lines, whose fields are separated by tabs:
//
//     finding KIND MAY ADDRESS BYTES     MAY: 0 or 1
//     block ADDRESS BYTES                if the block is known; 0 bytes: its size is not
//     use ROLE EFFECT STREAM DEFAULT WORK ROLE: earlier, earlier_launch, later, later_launch, allocated or freed; a launch is that of
//                                     the graph which has the use; EFFECT: read, use or write; STREAM: 0 is the host; DEFAULT: 1 for
//                                     a default stream
//     away ROLE PROCESS NUMBER           instead of a use: it is a use of another process, which has it under this number
//     frame NAME FILE LINE               of the use before it, innermost first; LINE: 0 is unknown
//     end
//
// A use of shared memory, which findings of other processes may name, is a group "number NUMBER" with a use of the role "earlier" and
// perhaps an "earlier_launch", and an end. A line of its own names a kernel or a library's call whose memory is not known, once for each
// process:
//
//     unseen WORK
//
// Each group is one write, so the file has whole groups even if the process is killed.
#ifndef VR_STANDINS_CHECK_LINES_H
#define VR_STANDINS_CHECK_LINES_H

#define VR_CHECK_LINES_FOLDER    "VRAM_SIM_CHECK"
#define VR_CHECK_LINES_UNWRITTEN "VRAM_SIM_CHECK_UNWRITTEN" // set: reads of uninitialized memory are findings, too
#define VR_CHECK_LINES_SUFFIX    ".findings"
#define VR_CHECK_LINES_FRAMES    32       // of a use at most, of machine code and of Python each
#define VR_CHECK_LINES_UNSEEN    "unseen" // at most VR_CHECK_LINES_NAMES of a process
#define VR_CHECK_LINES_NAMES     64
#define VR_CHECK_LINES_NUMBER    "number"
#define VR_CHECK_LINES_AWAY      "away"
#define VR_CHECK_LINES_BOARD     "board"  // the file in the folder that holds the processes' board (check/check_board.h)
#define VR_CHECK_LINES_FAILED    "failed" // a line of its own: the process ran out of memory for the checker

#endif
