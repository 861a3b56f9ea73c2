import { render } from 'preact';
import { showHiddenCharacters } from './parts/visible.ts';
import { App } from './shell/app.tsx';
import './style.css';

showHiddenCharacters();
const place = document.getElementById('app');
if (place !== null) render(<App />, place);
