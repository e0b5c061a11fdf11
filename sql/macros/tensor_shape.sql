-- What the dimensions of a query, key or value mean: batch, tokens, heads and head size. NULL where
-- the layout does not fit them.
--
-- dims    shape as a list of numbers
-- layout  BHND, BNHD, BSNHD (two dimensions of batch), TND (tokens of all requests), pages (a pool
-- that ends in heads, head size), pool_heads (a pool whose second dimension holds the heads),
-- latent (one tensor of key and value), cache (tokens, heads times head size)
create macro tensor_shape(dims, layout) as
    case
        when layout = 'BHND' and len(dims) >= 4
        then {
            'batch':list_product(dims[1:len(dims) - 3]), 'n':dims[-2], 'h':dims[-3], 'd':dims[-1]
        }
        when layout in ('BNHD', 'BSNHD') and len(dims) >= 4
        then {
            'batch':list_product(dims[1:len(dims) - 3]), 'n':dims[-3], 'h':dims[-2], 'd':dims[-1]
        }
        when layout in ('BHND', 'BNHD') and len(dims) = 3
        then {'batch':dims[1], 'n':dims[2], 'h':1.0, 'd':dims[3]}
        when layout = 'TND' and len(dims) = 4
        then {'batch':1.0, 'n':dims[1] * dims[2], 'h':dims[3], 'd':dims[4]}
        when layout = 'TND' and len(dims) = 3
        then {'batch':1.0, 'n':dims[1], 'h':dims[2], 'd':dims[3]}
        when layout = 'pages' and len(dims) >= 3
        then {'batch':null, 'n':null, 'h':dims[-2], 'd':dims[-1]}
        when layout = 'pool_heads' and len(dims) >= 3
        then {'batch':null, 'n':null, 'h':dims[2], 'd':null}
        when layout = 'latent' and len(dims) >= 2
        then {'batch':null, 'n':null, 'h':1.0, 'd':dims[-1]}
        when layout = 'cache' and len(dims) = 3
        then {'batch':1.0, 'n':dims[1], 'h':dims[2], 'd':dims[3]}
        when layout = 'cache' and len(dims) = 2
        then {'batch':1.0, 'n':dims[1], 'h':1.0, 'd':dims[2]}
    end
