// What the user of this page may do. Until the master has said so, nothing is left out.

let roles = null;

export const setRoles = (known) => {
  roles = known;
};

/** Whether one of these roles is theirs: may('operator'). */
export const may = (...wanted) => roles === null || wanted.some((role) => roles.includes(role));
