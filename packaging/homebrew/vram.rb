# Homebrew (on Linux) builds the release's source archive. url and sha256 are filled in by packaging/release.sh.
class Vram < Formula
  desc "Inspectable malloc for GPU memory"
  homepage "@HOMEPAGE@"
  url "@HOMEPAGE@/releases/download/v@VERSION@/vram-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "cjson"
  depends_on :linux
  depends_on "sqlite"
  depends_on "xz"
  depends_on "zlib"
  depends_on "zstd"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DVRAM_TESTS=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    (testpath/"empty.json").write '{"segments": [], "device_traces": []}'
    assert_match "empty.json", shell_output("#{bin}/vram report #{testpath}/empty.json")
    (testpath/"try.c").write <<~C
      #include <vram/vram.h>
      int main(void) { return vram_options_check("expandable_segments:True", 0) != VRAM_OK; }
    C
    system ENV.cc, "try.c", "-I#{include}", "-L#{lib}", "-lvram", "-o", "try"
    system "./try"
  end
end
