-- Whether events of a category are calls of a device's runtime or driver, whoever made it:
-- cuda_runtime, cuda_driver, xpu_runtime, Runtime. NULL without a category.
--
-- category  category of an event as the profiler wrote it
create macro is_runtime_call(category) as
    contains(lower(category), 'runtime') or contains(lower(category), 'driver')
