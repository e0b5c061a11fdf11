-- Whether events of a category are work of a device: kernels, copies, fills. Kineto spelled them
-- Kernel, Memcpy and Memset once. NULL without a category.
--
-- category  category of an event as the profiler wrote it
create macro is_device_work(category) as
    lower(category) in ('kernel', 'gpu_memcpy', 'memcpy', 'gpu_memset', 'memset')
