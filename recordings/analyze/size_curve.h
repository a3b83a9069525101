// size_curve.h: how bytes go with a size (of the batch, the sequence), told by two or three points.
#ifndef VR_ANALYZE_SIZE_CURVE_H
#define VR_ANALYZE_SIZE_CURVE_H

#include "base/base.h"
#include "vram/profile.h"

enum vr_curve_shape {
    VR_SHAPE_CONSTANT,
    VR_SHAPE_INVERSE,  // a + b / size
    VR_SHAPE_STRAIGHT, // a + b * size
    VR_SHAPE_SQUARE,   // a + b * size + c * size^2
    VR_SHAPE_CUBE      // a + b * size^3
};

// Points by ascending size.
struct vr_size_points {
    double size[VRAM_FORECAST_MOST], bytes[VRAM_FORECAST_MOST];
    size_t count; // 2 or 3
    bool single;  // of one allocation, not of several
    double slack; // by how many bytes a point may be off a curve that it lies on
};

struct vr_size_curve {
    double value, low, high; // at the size that is asked for; the range is what other curves say that the points allow
    enum vr_curve_shape shape;
};

// The simplest curve that the points lie on. Between two points it does not leave what they span, and beyond them it does not turn round.
struct vr_size_curve vr_size_curve_at(const struct vr_size_points *points, double size);

#endif
