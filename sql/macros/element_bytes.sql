-- Bytes of an element of a type, by our word for it; NULL for a word that we do not know.
--
-- dtype  fp64, fp32, tf32, fp16, bf16, fp8_e4m3, fp8_e5m2, fp4, int8, int64, ...
create macro element_bytes(dtype) as
    case
        when dtype in ('fp64', 'int64')
        then 8.0
        when dtype in ('fp32', 'tf32', 'int32')
        then 4.0
        when dtype in ('fp16', 'bf16', 'int16')
        then 2.0
        when starts_with(dtype, 'fp8') or dtype in ('int8', 'uint8', 'bool')
        then 1.0
        when dtype in ('fp4', 'int4')
        then 0.5
    end::double
