"""Runs Debian's own programs that use CUDA, from its packages."""
import pathlib
import re
import subprocess
import sys

import nvrtc
from rows import main, row

FRAMES = 25


def output_of(*command, codes=(0,), environment=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, stdin=subprocess.DEVNULL)
    sys.stdout.write(done.stdout)
    assert done.returncode in codes, f"{command[0]}: exit {done.returncode}"
    return done.stdout


def ffmpeg(filters, *devices):
    source = ["-f", "lavfi", "-i", f"testsrc=s=640x360:r=25:d={FRAMES / 25}"]
    text = output_of("ffmpeg", "-hide_banner", "-nostats", *devices, *source, "-vf", f"format=yuv420p,{filters}", "-f", "framemd5", "-")
    frames = [line.split(",") for line in text.splitlines() if re.match(r"0, +\d+", line)]
    assert len(frames) == FRAMES, len(frames)
    return frames


@row
def ffmpeg_hwupload():
    """Uploads, scales with ffmpeg's own kernel, and downloads."""
    frames = ffmpeg("hwupload,scale_cuda=320:180,hwdownload,format=yuv420p", "-init_hw_device", "cuda=gpu", "-filter_hw_device", "gpu")
    assert int(frames[0][4]) == 320 * 180 * 3 // 2


@row
def ffmpeg_hwupload_cuda():
    """An upload followed by a download returns the same frames."""
    there_and_back, plain = ffmpeg("hwupload_cuda,hwdownload,format=yuv420p"), ffmpeg("null")
    assert [frame[5] for frame in there_and_back] == [frame[5] for frame in plain]


@row
def gstreamer_cudaupload():
    """The caps between them are needed: without them both elements pass frames through."""
    output_of("gst-launch-1.0", "--no-fault", "videotestsrc", f"num-buffers={FRAMES}", "!", "cudaupload", "!", "video/x-raw(memory:CUDAMemory)", "!",
              "cudadownload", "!", "video/x-raw", "!", "fakesink")


@row
def hashcat_md5():
    """NVRTC compiles its kernels, loaded by the name without a number. They compute nothing, so no password is found (exit 1)."""
    pathlib.Path("words").write_text("hashcat\npassword\n")
    text = output_of("hashcat", "-m", "0", "-a", "0", "-D", "2", "-d", "1", "--potfile-disable", "--self-test-disable", "-w", "1",
                     "5f4dcc3b5aa765d61d8327deb882cf99", "words", codes=(1,), environment=nvrtc.environment())
    assert re.search(r"^\* Device #1: NVIDIA", text, re.M) and re.search(r"^Status\.+: Exhausted", text, re.M)


main()
