/** Keys that agents hold for clients with static header fields: they begin with this. */
export const keyPrefix = 'agw_'
