module vram

go 1.19
