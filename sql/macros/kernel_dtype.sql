-- Our word for a type as names of kernels write it: E4m3 is fp8_e4m3. NULL for what is none.
create macro kernel_dtype(written) as
    case
        when regexp_matches(written, '(?i)e4m3|^fp8')
        then 'fp8_e4m3'
        when regexp_matches(written, '(?i)e5m2')
        then 'fp8_e5m2'
        when regexp_matches(written, '(?i)bfloat16|bf16|DF16b')
        then 'bf16'
        when regexp_matches(written, '(?i)half|float16|fp16|^f16|DF16_')
        then 'fp16'
        when regexp_matches(written, '(?i)^i8|int8')
        then 'int8'
        when regexp_matches(written, '(?i)e2m1')
        then 'fp4'
        when written in ('f32', 'float')
        then 'fp32'
    end
