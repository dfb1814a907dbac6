# SPDX-License-Identifier: Apache-2.0
# CUDA programs of `gpuseg bench gpu`; built only where nvcc is: make gpu-bench (in rt-scheduler/native).
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
NVCC_ARCH ?= -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_80,code=compute_80
NVCC_FLAGS ?= -O2 -std=c++17 -cudart static
GPU_API ?= ../../segment-api

.PHONY: gpu-bench
ifeq ($(NVCC),)
gpu-bench:
	@echo "gpu-bench: nvcc is not installed; the CUDA programs are not built"
else
gpu-bench: $(RM_BUILD)/gpuseg-bench-be $(RM_BUILD)/gpuseg-bench-rt $(RM_BUILD)/gpuseg-bench-proc
endif

$(RM_BUILD)/gpuseg-bench-be: gpu-bench/gpuseg_bench_be.cu gpu-bench/gpu_work.cuh | $(RM_BUILD)
	$(NVCC) $(NVCC_ARCH) $(NVCC_FLAGS) -o $@ $<

$(RM_BUILD)/gpuseg-bench-proc: gpu-bench/gpuseg_bench_proc.cu gpu-bench/gpu_work.cuh | $(RM_BUILD)
	$(NVCC) $(NVCC_ARCH) $(NVCC_FLAGS) -o $@ $< -ldl

$(RM_BUILD)/obj/gpuseg_rm_cuda.o: rm/gpuseg_rm.c rm/gpuseg_rm.h | $(RM_BUILD)
	@mkdir -p $(@D)
	$(RM_CC) $(RM_CFLAGS) -c -o $@ $<

$(RM_BUILD)/gpuseg-bench-rt: gpu-bench/gpuseg_bench_rt.cu gpu-bench/gpu_work.cuh $(RM_BUILD)/obj/gpuseg_rm_cuda.o \
		$(GPU_API)/build/libgpuseg.a $(GPU_API)/include/gpuseg_cuda.h
	$(NVCC) $(NVCC_ARCH) $(NVCC_FLAGS) -I$(GPU_API)/include -o $@ $< $(RM_BUILD)/obj/gpuseg_rm_cuda.o \
		$(GPU_API)/build/libgpuseg.a -lpthread

# The same programs for machines without a GPU, on the RM stand-in: what tests of the bench run. Never measured with.
STANDIN_FLAGS := -O2 -Wall -Wextra -Werror -Igpu-bench/standin -I$(GPU_API)/include
STANDIN_DEPS := gpu-bench/gpu_work.cuh gpu-bench/standin/cuda_runtime_api.h $(RM_BUILD)/obj/cuda_standin.o

.PHONY: gpu-bench-standin
gpu-bench-standin: $(RM_BUILD)/standin/gpuseg-bench-be $(RM_BUILD)/standin/gpuseg-bench-rt \
		$(RM_BUILD)/standin/gpuseg-bench-proc

$(RM_BUILD)/obj/cuda_standin.o: gpu-bench/standin/cuda_standin.c gpu-bench/standin/cuda_runtime_api.h rm/rm_context.h rm/rm_wire.h
	@mkdir -p $(@D)
	$(RM_CC) $(RM_CFLAGS) -c -o $@ $<

$(RM_BUILD)/standin/gpuseg-bench-be: gpu-bench/gpuseg_bench_be.cu $(STANDIN_DEPS)
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(STANDIN_FLAGS) -o $@ -x c++ $< -x none $(RM_BUILD)/obj/cuda_standin.o -lpthread

$(RM_BUILD)/standin/gpuseg-bench-proc: gpu-bench/gpuseg_bench_proc.cu $(STANDIN_DEPS)
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(STANDIN_FLAGS) -o $@ -x c++ $< -x none $(RM_BUILD)/obj/cuda_standin.o -lpthread

$(RM_BUILD)/standin/gpuseg-bench-rt: gpu-bench/gpuseg_bench_rt.cu $(STANDIN_DEPS) $(RM_BUILD)/obj/gpuseg_rm_cuda.o $(LIBRARY)
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(STANDIN_FLAGS) -o $@ -x c++ $< -x none $(RM_BUILD)/obj/cuda_standin.o \
		$(RM_BUILD)/obj/gpuseg_rm_cuda.o $(LIBRARY) -lpthread
