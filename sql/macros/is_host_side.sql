-- Whether events of a category stand on the host: all but what runs on a device, or only waits
-- or measures there, and spans of the profiler. A category that nobody knows, and none, is the
-- host's.
--
-- category  category of an event as the profiler wrote it
create macro is_host_side(category) as
    coalesce(lower(category), '') not in (
        'kernel',
        'gpu_memcpy',
        'memcpy',
        'gpu_memset',
        'memset',
        'cuda_sync',
        'xpu_sync',
        'cuda_event',
        'gpu_user_annotation',
        'cuda_profiler_range',
        'collective_comm',
        'overhead',
        'trace'
    )
