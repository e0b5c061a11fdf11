-- Whether events of a category are operators of the framework. NULL without a category.
--
-- category  category of an event as the profiler wrote it
create macro is_operator(category) as
    lower(category) in ('cpu_op', 'operator')
