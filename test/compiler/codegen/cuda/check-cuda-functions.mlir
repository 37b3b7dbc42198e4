// RUN: partita-opt --check-cuda-functions --split-input-file -verify-diagnostics %s

func.func @instructions(%x: f32) -> f32 {
  %0 = math.sqrt %x : f32
  %1 = math.fma %0, %x, %x : f32
  return %1 : f32
}

// -----

func.func @function(%x: f64) -> f64 {
  // expected-error@+1 {{'erf' of 'f64' has no code for CUDA devices}}
  %0 = math.erf %x : f64
  return %0 : f64
}
