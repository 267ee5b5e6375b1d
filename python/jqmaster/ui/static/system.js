// The system that the master serves, where that is one of several partitions.
let partitions = 0;

export const setPartitions = (count) => {
  partitions = count || 0;
};

/** How many partitions there are; 0: the master serves a namespace alone. */
export const partitionCount = () => partitions;

/** The number of the partition that a job's id names; null where there are none. */
export const partitionOf = (id) => (partitions ? Number.parseInt(id.slice(14), 16) || 0 : null);

/** "2 of 6 partitions do not answer" */
export const missingText = (missing, all) =>
  `${missing} of ${all} partitions ${missing === 1 ? 'does' : 'do'} not answer`;
