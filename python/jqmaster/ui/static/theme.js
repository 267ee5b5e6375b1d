// Dark or light: as the system is, unless the reader chose.
const KEY = 'jq-theme';
const LABELS = { auto: 'Auto', light: 'Light', dark: 'Dark' };

function chosen() {
  try {
    return localStorage.getItem(KEY) || 'auto';
  } catch {
    return 'auto';
  }
}

function apply(theme) {
  const root = document.documentElement;
  if (theme === 'auto') delete root.dataset.theme;
  else root.dataset.theme = theme;
}

// Before anything is drawn.
apply(chosen());

export function startTheme() {
  const button = document.getElementById('theme');
  let theme = chosen();
  const say = () => {
    button.textContent = LABELS[theme] || LABELS.auto;
    button.title = 'Colours: as the system, light or dark';
    button.setAttribute('aria-label', `Colours: ${LABELS[theme] || LABELS.auto}; change`);
  };
  button.addEventListener('click', () => {
    theme = { auto: 'light', light: 'dark' }[theme] || 'auto';
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // It holds for this page all the same.
    }
    apply(theme);
    say();
  });
  say();
}
